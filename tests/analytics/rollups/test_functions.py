"""The report's tables against a recount by plain Python."""

import gzip
import math
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from balog.analytics import functions, rollups
from balog.analytics.functions import between, channels, failures, metrics, runs, streams
from balog.analytics.rollups import from_files
from balog.analytics.spark_engine import spark_settings
from balog.common.errors import ConfigError

pytestmark = pytest.mark.spark

EVENTS = """channel string, timestamp timestamp, level string, context struct<application string, run_id string>,
  payload struct<cls_type string, type string, metric string, value double, outcome string, duration double,
    exit_code int, records bigint, values array<struct<name string, value double>>>,
  quarantine struct<file string, offset bigint, reason string, raw string>"""


Frames = dict[str, list[dict[str, Any]]]


def collected(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


@pytest.fixture(scope="module", params=["rollup rows", "typed events", "default events"])
def tables(spark: Any, root: Path, request: pytest.FixtureRequest) -> Frames:
    """What the functions say of each kind of frame that they take."""
    reader = spark.read.format("balog")
    if request.param == "typed events":
        asked = reader.schema(EVENTS).load(str(root))
    elif request.param == "default events":
        asked = reader.load(str(root))
    else:
        asked = rollups.from_files(spark, [str(root)])
    names = ("channels", "metrics", "runs", "quarantine")
    return {name: collected(getattr(functions, name)(asked)) for name in names}


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
    expected = counted["runs"]
    assert len(tables["runs"]) == len(expected) > 2
    assert sorted((row["started"] for row in tables["runs"]), reverse=True) == [
        row["started"] for row in tables["runs"]
    ]
    for row in tables["runs"]:
        run = expected[row["run_id"]]
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


NOON = "2026-11-20T12:{:02d}:00Z"


@pytest.fixture
def asked(write: Any, spark: Any) -> Any:
    """Gives the rollup rows of some documents."""
    return lambda *documents: from_files(spark, [str(write("a.jsonl", *documents))]).coalesce(1)


def metric(kind: str, name: str, value: float, **tags: Any) -> dict[str, Any]:
    return {"cls_type": "metric", "type": kind, "metric": name, "value": value, "tags": tags}


def report(**more: Any) -> dict[str, Any]:
    return {"cls_type": "run", "outcome": "succeeded", "duration": 2.5, "exit_code": 0, "command": "tap", **more}


def test_several_applications_of_one_run_are_one_row(make: Any, asked: Any) -> None:
    rows = asked(
        make(report(records=10, bytes=90), context={"run_id": "r", "application": "tap"}),
        make(
            report(outcome="failed", duration=3.5, records=0, exit_code=2),
            context={"run_id": "r", "application": "target"},
        ),
        make(context={"run_id": "r", "application": "broker"}),
        make(context={}),
    )
    (row,) = runs(rows).collect()
    assert (row.applications, row.outcome, row.duration, row.records, row.bytes, row.exit_code, row.events) == (
        ["broker", "tap", "target"], "failed", 3.5, 10, 90, 2, 3,
    )  # fmt: skip


def test_a_run_over_midnight_is_one_row_with_its_latest_report(make: Any, asked: Any) -> None:
    rows = asked(
        make(timestamp="2026-11-20T23:59:50Z"),
        make(report(outcome="failed", records=1), timestamp="2026-11-20T23:59:59Z", level="ERROR"),
        make(report(records=7), timestamp="2026-11-21T00:00:10Z"),
    )
    (row,) = collected(runs(rows))
    assert (row["outcome"], row["records"], row["events"], row["errors"]) == ("succeeded", 7, 3, 1)
    assert (row["ended"] - row["started"]).total_seconds() == 20


def test_failures_are_counted_by_fingerprint_and_new_ones_come_first(make: Any, asked: Any) -> None:
    def error(text: str, minute: int) -> dict[str, Any]:
        return dict(make({"cls_type": "log", "message": text}, level="ERROR", timestamp=NOON.format(minute)))

    rows = asked(*(error(f"row {minute} lost", minute) for minute in (5, 1, 40)), error("no route", 31), make())
    since = datetime(2026, 11, 20, 12, 30, tzinfo=timezone.utc)
    new, old = collected(failures(rows, since))
    assert (new["message"], new["is_new"], new["events"]) == ("no route", True, 1)
    assert (old["message"], old["is_new"], old["events"]) == ("row <n> lost", False, 3)
    assert (old["channels"], old["applications"]) == (["tap_x.log"], ["tap-x"])
    assert old["example"]["message"] == "row 1 lost"
    assert (old["last"] - old["first"]).total_seconds() == 39 * 60


def test_streams_are_told_by_reports_counters_and_timers_the_slowest_first(make: Any, asked: Any) -> None:
    tap, target = {"application": "tap", "run_id": "r"}, {"application": "target", "run_id": "r"}
    told = report(
        records=30, streams=[{"stream": "users", "records": 20, "bytes": 400}, {"stream": "tags", "records": 10}]
    )
    rows = asked(
        make(told, context=tap),
        make(metric("counter", "record_count", 19, stream="users"), context=tap),
        make(metric("timer", "sync_duration", 8, stream="users"), context=tap),
        make(metric("timer", "sync_duration", 2, stream="users"), context=tap),
        make(metric("timer", "http_request_duration", 0.5, endpoint="users"), context=tap),
        make(metric("timer", "http_request_duration", 0.5, endpoint="/login"), context=tap),
        make(metric("counter", "record_count", 5, endpoint="users"), context=target),
        make(metric("timer", "batch_processing_time", 4, stream="users"), context=target),
    )
    found = [[*row.values()] for row in collected(streams(rows))]
    assert found == [
        ["tap", "users", 19, 400, 1, 10.0, 2.0, 8.0, 8.0, 1, 0.5, 1.9],
        ["target", "users", 5, None, None, 4.0, 4.0, 4.0, 4.0, None, None, 1.25],
        ["tap", "tags", 10, None, 1, None, None, None, None, None, None, None],
    ]


def test_a_total_with_a_part_beyond_64_bits_is_null_and_not_the_rest(make: Any, asked: Any) -> None:
    at = {"timestamp": NOON.format(1)}
    named = {"stream": "s"}
    rows = asked(
        make(metric("counter", "record_count", 1e30, **named), context={"application": "a"}, **at),
        make(metric("counter", "record_count", 5, **named), context={"application": "b"}, **at),
        make(report(records=2**62), context={"application": "c", "run_id": "r"}, timestamp=NOON.format(59)),
        make(
            metric("counter", "record_count", 6, **named),
            context={"application": "b"},
            timestamp="2026-11-20T13:00:00Z",
        ),
    )
    assert {row["application"]: row["records"] for row in collected(streams(rows))} == {"a": None, "b": 11}


def test_a_sum_of_records_is_exact_in_any_order(make: Any, asked: Any) -> None:
    names = {"a": 2**62, "b": 2**62, "c": -(2**62), "d": 3}
    rows = asked(*(make(report(records=n), context={"application": name, "run_id": "r"}) for name, n in names.items()))
    assert [row["records"] for row in collected(runs(rows))] == [2**62 + 3]


def test_metrics_by_more_keys_and_an_unknown_key_is_refused(make: Any, asked: Any) -> None:
    rows = asked(
        *(make(metric("gauge", "depth", value, stream=stream)) for value, stream in ((1, "a"), (2, "a"), (5, "b")))
    )
    found = [[row["stream"], row["count"], row["p50"]] for row in collected(metrics(rows, by=["stream"]))]
    assert found == [["a", 2, 1.0], ["b", 1, 5.0]]
    with pytest.raises(ConfigError, match="no key pid; there are hour, channel"):
        metrics(rows, by=["pid"])


def test_hours_are_those_of_utc_and_a_moment_without_a_zone_is_refused(make: Any, asked: Any, spark: Any) -> None:
    with spark_settings(spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        rows = asked(
            make(timestamp=NOON.format(0)), make(timestamp=NOON.format(59)), make(timestamp="2026-11-20T13:00:00Z")
        )
        noon, one = (datetime(2026, 11, 20, hour, tzinfo=timezone.utc) for hour in (12, 13))
        assert [row["events"] for row in collected(channels(between(rows, noon, one)))] == [2]
    with pytest.raises(ConfigError, match="no time zone"):
        between(rows, datetime(2026, 11, 20))


def test_a_frame_that_holds_no_events_is_refused_by_what_it_lacks(spark: Any) -> None:
    with pytest.raises(ConfigError, match="no column channel, context, level, payload_json, timestamp"):
        channels(spark.range(1))


def test_the_questions_are_found_where_the_session_is() -> None:
    import balog.analytics

    for name in set(functions.__all__) - {"as_rollups"}:
        assert getattr(balog.analytics, name) is getattr(functions, name)
    with pytest.raises(AttributeError, match="no attribute 'oracle'"):
        _ = balog.analytics.oracle
