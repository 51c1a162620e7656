"""Every notebook function on Spark and on DuckDB: the same columns, types, order and numbers."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from balog.analytics import functions
from balog.analytics.duckdb_engine import DuckDBEngine
from balog.analytics.rollups import Rollups
from balog.analytics.rollups.frames import FRAMES
from balog.analytics.sketches import RANK_ERROR, sketched
from balog.analytics.spark_engine import SparkResult
from tests.analytics.questions.conftest import MIDNIGHT, BothEngines

pytestmark = pytest.mark.spark
pytest.importorskip("duckdb", reason="duckdb is not installed")

HOUR = timedelta(hours=1)
QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "channels": lambda ask, data: ask.channels(data),
    "metrics": lambda ask, data: ask.metrics(data),
    "metrics by all": lambda ask, data: ask.metrics(
        data, by=("hour", "channel", "application", "stream", "endpoint", "status", "stage")
    ),
    "runs": lambda ask, data: ask.runs(data),
    "failures": lambda ask, data: ask.failures(data),
    "new failures": lambda ask, data: ask.failures(data, since=MIDNIGHT),
    "streams": lambda ask, data: ask.streams(data),
    "quarantine": lambda ask, data: ask.quarantine(data),
    "between": lambda ask, data: ask.channels(ask.between(data, MIDNIGHT - HOUR, MIDNIGHT + HOUR)),
    "since": lambda ask, data: ask.runs(ask.between(data, since=MIDNIGHT)),
    "until": lambda ask, data: ask.runs(ask.between(data, until=MIDNIGHT)),
    "nothing": lambda ask, data: ask.channels(ask.between(data, MIDNIGHT, MIDNIGHT)),
}


def assert_equal(found: Any, expected: Any, place: str = "") -> None:
    """Compare values; sums of doubles may differ in their last digits."""
    if isinstance(expected, float) and isinstance(found, float):
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-6) or (found != found and expected != expected), (
            place
        )
    elif isinstance(expected, dict):
        assert list(found) == list(expected), place
        for name in expected:
            assert_equal(found[name], expected[name], f"{place}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for number, (one, other) in enumerate(zip(found, expected)):
            assert_equal(one, other, f"{place}[{number}]")
    else:
        assert (type(found), found) == (type(expected), expected), place


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_engines_return_the_same_columns_types_rows_and_order(both: BothEngines, name: str) -> None:
    expected = SparkResult(QUESTIONS[name](functions, both.spark))
    found = QUESTIONS[name](functions, both.duckdb)
    assert (found.columns, found.types) == (expected.columns, expected.types)
    rows = expected.rows()
    assert_equal(found.rows(), rows, name)
    assert rows or name == "nothing"


def test_percentiles_of_many_values_are_within_the_promised_error(spark: Any) -> None:
    values = np.random.default_rng(3).lognormal(size=60_000)
    names = FRAMES["metrics"].fieldNames()
    rows = [
        tuple({"metric": "m", "type": "timer", "sketch": bytearray(sketched(part))}.get(name) for name in names)
        for part in np.split(values, 30)
    ]
    frames = {name: spark.createDataFrame(rows if name == "metrics" else [], kind) for name, kind in FRAMES.items()}
    engine = DuckDBEngine()
    ranked = np.sort(values)
    for data in (Rollups(**frames), Rollups(**{name: engine.table(frame.toArrow()) for name, frame in frames.items()})):
        answer = functions.metrics(data)
        (row,) = answer.rows() if hasattr(answer, "rows") else [one.asDict() for one in answer.collect()]
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
            assert abs(np.searchsorted(ranked, row[name]) / len(ranked) - share) <= 2 * RANK_ERROR
