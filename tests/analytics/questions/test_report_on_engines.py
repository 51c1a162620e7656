"""Every section of the report on Spark and on DuckDB: the same numbers in the same order."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from balog.analytics.questions import details
from balog.analytics.questions import report as questions
from balog.analytics.reporting.query import parse_query
from balog.analytics.reporting.report import report_of
from balog.analytics.spark_engine import SparkEngine
from tests.analytics.questions.conftest import MIDNIGHT, BothEngines
from tests.analytics.questions.test_functions_on_engines import assert_equal

pytestmark = pytest.mark.spark
pytest.importorskip("duckdb", reason="duckdb is not installed")

OPTIONS: dict[str, dict[str, str]] = {  # tests/analytics/rollups/test_raw_files.py compares other times
    "two years": {"since": "2025-01-01", "until": "2027-01-01", "compare": "7d"},
    "nothing": {"since": "2001-01-01", "until": "2001-01-02"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_both_engines_make_the_same_report(both: BothEngines, name: str) -> None:
    query = parse_query(**OPTIONS[name], now=MIDNIGHT + timedelta(days=1))
    expected, found = (
        msgspec.to_builtins(report_of(rollups, query, ["x"], "rollups")) for rollups in (both.spark, both.duckdb)
    )
    assert_equal(found, expected, name)
    sections = ("failures", "runs", "throughput", "streams", "requests", "metrics", "waiting", "channels", "quarantine")
    empty = [section for section in sections if not expected[section]]
    assert not empty or name == "nothing"


def test_every_question_of_the_report_has_the_same_columns_and_types(both: BothEngines) -> None:
    ends = {"after": -(10**15), "until": 10**16}
    values: dict[str, Any] = {
        f"{name}_{end}": moment for name in ("period", "now", "before", "read") for end, moment in ends.items()
    }
    values |= {"step": "week", "most": 10_000, "ahead": 10**16, "first": 3, "last": 500, "run": "R1", "longest": 3}
    values |= {"metric0": "sync_duration", "stream0": "users", "metric1": "http_request_duration"}
    values |= {"stream1": None, "endpoint0": None, "endpoint1": "orders"}
    names = ("BOUNDS", "CHANNELS", "APPLICATIONS", "THROUGHPUT", "RECORDS", "METRICS", "FAILURES",
             "ALL_FAILURES", "RUNS", "OUTCOMES", "STREAMS")  # fmt: skip
    texts = {name: getattr(questions, name) for name in names}
    texts["hourly"] = questions.hourly([("sync_duration", "users", None), ("http_request_duration", None, "orders")])
    runs, failures = (
        sorted({row[name] for row in frame.frame.rows()})
        for name, frame in (("run_id", both.duckdb.runs), ("fingerprint", both.duckdb.errors))
    )
    texts["run_parts"], texts["run_lines"] = details.run_parts(len(runs)), details.run_lines(len(runs))
    some = len(failures)
    texts["failure_lines"], texts["failure_days"] = details.failure_lines(some), details.failure_days(some)
    texts["STREAM_RUNS"] = details.STREAM_RUNS
    spark = SparkEngine(both.spark.events.sparkSession)
    for name, text in texts.items():
        named = {f"name{place}": one for place, one in enumerate(runs if name.startswith("run_") else failures)}
        used = {key: value for key, value in {**values, **named}.items() if f":{key}" in text}
        expected = spark.sql(text, used, **both.spark._asdict())
        found = both.duckdb.events.engine.sql(text, used, **both.duckdb._asdict())
        assert (found.columns, found.types) == (expected.columns, expected.types), name
        assert_equal(found.rows(), expected.rows(), name)
        assert expected.rows(), name
