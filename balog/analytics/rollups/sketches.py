"""Quantiles that can be merged: KLL sketches of doubles, built in Python and merged by Spark.

A KLL sketch (Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams", 2016) keeps some of the values with
weights. https://datasketches.apache.org/docs/KLL/KLLSketch.html describes its format, which all languages share.

The p-quantile is the least value v for which the share of values ≤ v is at least p: an actual value, by the nearest
rank, without interpolation. It is exact up to ``K`` values, however they were merged. Beyond that, its rank is off by
less than ``RANK_ERROR`` of all values, with 99 % confidence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as f

from balog.errors import MissingExtraError

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
        raise MissingExtraError("percentiles", "spark") from None
    sketch = kll_doubles_sketch(K)
    sketch.update(values)
    return bytes(sketch.serialize())


def merged_sketch(column: str) -> Column:
    """Return the aggregate that merges sketches; null if all are null."""
    united = f.kll_merge_agg_double(column, K)
    return f.when(f.count(column) > 0, united)


def quantiles(sketch: Column, shares: Sequence[float] = PERCENTILES) -> list[Column]:
    """Return the quantiles of a column of sketches, null without a sketch; ``shares`` are from 0 to 1."""
    return [f.kll_sketch_get_quantile_double(sketch, f.lit(share)) for share in shares]
