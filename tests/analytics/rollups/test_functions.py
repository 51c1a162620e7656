"""The report's tables against a recount by plain Python."""

import gzip
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", params=["rollup", "typed events", "default events"])
def tables(spark: Any, root: Path, request: pytest.FixtureRequest) -> dict[str, list[dict[str, Any]]]:
    """The four tables, out of each kind of frame that they take."""
    from balog.analytics.reading.schemas import EVENTS
    from balog.analytics.reporting.report import tables as ask

    reader = spark.read.format("balog")
    if request.param == "rollup":
        reader = reader.option("rollup", True)
    elif request.param == "typed events":
        reader = reader.schema(EVENTS)
    return ask(reader.load(str(root)))


def test_channels_equal_the_recount(tables: Any, counted: Any) -> None:

    assert {(row["channel"], row["level"]): row["events"] for row in tables["channels"]} == dict(counted["channels"])
    assert {(row["channel"], row["level"]): row["errors"] for row in tables["channels"]} == dict(counted["errors"])


def test_metrics_equal_the_recount_and_percentiles_are_exact(tables: Any, counted: Any) -> None:
    expected = counted["metrics"]
    assert {("foo", "value"), ("record_count", "counter"), ("http_request_duration", "timer")} <= set(expected)
    assert len(tables["metrics"]) == len(expected)
    for row in tables["metrics"]:
        count, total, shares = expected[row["metric"], row["type"]]
        assert row["count"] == count
        assert math.isclose(row["sum"], total, rel_tol=1e-12)
        assert [row["p50"], row["p95"], row["p99"]] == shares


def test_runs_equal_the_recount_and_one_that_was_killed_is_unknown(tables: Any, counted: Any) -> None:
    runs = counted["runs"]
    assert len(tables["runs"]) == len(runs) > 2
    assert sorted((row["started"] for row in tables["runs"]), reverse=True) == [
        row["started"] for row in tables["runs"]
    ]
    for row in tables["runs"]:
        run = runs[row["run_id"]]
        assert (row["events"], row["errors"], row["applications"]) == (
            run["events"],
            run["errors"],
            sorted(run["applications"]),
        )
        if run["reports"]:
            (report,) = run["reports"]
            assert (row["outcome"], row["records"], row["duration"]) == (
                report["outcome"],
                report["records"],
                report["duration"],
            )
        else:
            first, last = (
                datetime.fromisoformat(stamp.replace("Z", "+00:00"))
                for stamp in (min(run["stamps"]), max(run["stamps"]))
            )
            assert (row["outcome"], row["records"]) == ("unknown", None)
            assert math.isclose(row["duration"], (last - first).total_seconds(), abs_tol=1e-5)
    assert [row["outcome"] for row in tables["runs"]].count("unknown") == 1


def test_bad_lines_are_counted_by_reason_with_one_place(tables: Any, counted: Any) -> None:
    found = {row["reason"].partition(":")[0]: row for row in tables["quarantine"]}
    assert {reason: row["lines"] for reason, row in found.items()} == {"$": 1, "$.schema": 1}
    assert counted["bad"] == 2
    for row in found.values():
        path = Path(row["file"])
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert data[row["offset"] :].startswith((b"{ broken\n", b'{"schema": "3.0.0"'))


def test_several_applications_of_one_run_are_one_row(spark: Any, make: Any, write: Any) -> None:
    from balog.analytics.rollups.rollup import runs

    report = {
        "cls_type": "run",
        "outcome": "succeeded",
        "duration": 2.5,
        "exit_code": 0,
        "command": "tap",
        "records": 10,
    }
    path = write(
        "a.jsonl",
        make(report, context={"run_id": "r", "application": "tap"}),
        make(
            report | {"outcome": "failed", "duration": 3.5, "records": 0},
            context={"run_id": "r", "application": "target"},
        ),
        make(context={"run_id": "r", "application": "broker"}),
        make(context={}),
    )
    (row,) = runs(spark.read.format("balog").option("rollup", True).load(str(path))).collect()
    assert (row.applications, row.outcome, row.duration, row.records, row.events) == (
        ["broker", "tap", "target"], "failed", 3.5, 10, 3,
    )  # fmt: skip


def test_a_frame_that_holds_no_events_is_refused_by_what_it_lacks(spark: Any) -> None:
    from balog.analytics.rollups.rollup import channels
    from balog.errors import ConfigError

    with pytest.raises(ConfigError, match="no column channel, context, level, payload, timestamp"):
        channels(spark.range(1))
