"""KLL sketches of doubles, which percentiles are computed from.

A KLL sketch (Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams", 2016) keeps some of the values with
weights. https://datasketches.apache.org/docs/KLL/KLLSketch.html describes its format, which all languages share.
Sketches are built here; the engine that answers a question merges them.

The p-quantile is the least value v for which the share of values ≤ v is at least p: an actual value, by the nearest
rank, without interpolation. It is exact up to ``K`` values, however they were merged. Beyond that, its rank is off by
less than ``RANK_ERROR`` of all values, with 99 % confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from balog.common.errors import MissingExtraError

if TYPE_CHECKING:
    import numpy as np

K = 1000
"""The sketch's size parameter: it keeps at most about 3 × K values of 8 bytes, and all values up to ``K``."""

RANK_ERROR = 0.0028
"""The error of the rank, as a share of all values: ``get_normalized_rank_error`` for ``K``."""

PERCENTILES = (0.50, 0.95, 0.99)


def sketched(values: np.ndarray) -> bytes:
    """Return the sketch of one or more finite doubles.

    Raises:
        MissingExtraError: datasketches is not installed.
    """
    try:
        from datasketches import kll_doubles_sketch
    except ImportError:
        raise MissingExtraError("percentiles", "embedded") from None
    sketch = kll_doubles_sketch(K)
    sketch.update(values)
    return bytes(sketch.serialize())


def merge_sketches(sketches: Sequence[bytes | None] | None) -> bytes | None:
    """Return one sketch of all values, null if there is none."""
    from datasketches import kll_doubles_sketch

    merged = kll_doubles_sketch(K)
    for part in sketches or ():
        if part is not None:
            merged.merge(kll_doubles_sketch.deserialize(part))
    return None if merged.is_empty() else bytes(merged.serialize())


def quantile_of(sketch: bytes, share: float) -> float:
    """Return a quantile of the values of a sketch; ``share`` is from 0 to 1."""
    from datasketches import kll_doubles_sketch

    return float(kll_doubles_sketch.deserialize(sketch).get_quantile(share, True))
