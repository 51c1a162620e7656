"""Quantiles by ranks, against numpy, whatever the values are shared out to and however they are merged."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.analytics.rollups.frames import merged_sketch
from balog.analytics.sketches import PERCENTILES, RANK_ERROR, K, sketched

datasketches = pytest.importorskip("datasketches", reason="datasketches is not installed")


def united(parts: list[np.ndarray], order: np.random.Generator) -> Any:
    """Merge sketches two by two, in whatever order: any tree."""
    sketches = [datasketches.kll_doubles_sketch.deserialize(sketched(part)) for part in parts]
    while len(sketches) > 1:
        first, second = sorted(order.choice(len(sketches), 2, replace=False), reverse=True)
        sketches[second].merge(sketches.pop(first))
    return sketches[0]


def split(values: np.ndarray, order: np.random.Generator, most: int) -> list[np.ndarray]:
    cuts = np.sort(order.integers(0, len(values) + 1, order.integers(0, most)))
    return [part for part in np.split(order.permutation(values), cuts) if len(part)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=K), st.integers(0, 2**32))
def test_up_to_k_values_a_quantile_is_numpys_nearest_rank_however_they_were_merged(
    values: list[float], seed: int
) -> None:
    order = np.random.default_rng(seed)
    sketch = united(split(np.array(values), order, 40), order)
    expected = np.percentile(values, [100 * share for share in PERCENTILES], method="inverted_cdf")
    assert [sketch.get_quantile(share, True) for share in PERCENTILES] == list(expected)


@pytest.mark.parametrize("seed", range(4))
def test_beyond_k_values_ranks_are_off_by_no_more_than_is_told(seed: int) -> None:
    order = np.random.default_rng(seed)
    values = order.lognormal(size=40_000) if seed % 2 else np.floor(order.exponential(50, 40_000))
    sketch = united(split(values, order, 400), order)
    assert sketch.n == len(values)
    ranked = np.sort(values)
    for share in PERCENTILES:
        found = sketch.get_quantile(share, True)
        # where values are equal, all their ranks are right
        low, high = (np.searchsorted(ranked, found, side) / len(ranked) for side in ("left", "right"))
        assert low - 2 * RANK_ERROR <= share <= high + 2 * RANK_ERROR  # twice: 99 % of the time is not always


def test_the_error_that_is_told_is_the_librarys_own() -> None:
    assert datasketches.kll_doubles_sketch(K).normalized_rank_error(False) <= RANK_ERROR


@pytest.mark.spark
def test_spark_merges_sketches_as_the_library_does_and_leaves_out_nulls(spark: Any) -> None:
    from pyspark.sql import functions as f

    order = np.random.default_rng(7)
    few, many = order.normal(size=K), order.normal(size=30_000)
    rows = [("few", bytearray(sketched(part))) for part in split(few, order, 30)]
    rows += [("many", bytearray(sketched(part))) for part in split(many, order, 30)]
    rows += [("few", None), ("none", None)]
    merged = spark.createDataFrame(rows, "name string, s binary").groupBy("name").agg(merged_sketch("s").alias("s"))
    quantiles = [f.kll_sketch_get_quantile_double("s", f.lit(share)) for share in PERCENTILES]
    found = {row[0]: list(row)[1:] for row in merged.select("name", "s", *quantiles).collect()}
    assert found["none"] == [None] * 4
    assert found["few"][1:] == list(np.percentile(few, [50, 95, 99], method="inverted_cdf"))
    back = datasketches.kll_doubles_sketch.deserialize(bytes(found["many"][0]))
    assert (back.n, back.k) == (30_000, K)
    assert found["many"][1:] == [back.get_quantile(share, True) for share in PERCENTILES]
    for share, value in zip(PERCENTILES, found["many"][1:]):
        assert abs(np.mean(many <= value) - share) <= 2 * RANK_ERROR
