"""Every section of the report, on both engines, against a recount in plain Python of hostile archives."""

import math
import random
from bisect import bisect_right
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed")

from balog.analytics.reporting.model import Report, encode
from balog.analytics.reporting.query import Period, parse_query
from balog.analytics.reporting.report import make_local_report, make_raw_report
from balog.analytics.reporting.spark_report import make_report
from balog.analytics.sketches import RANK_ERROR
from tests.event_lines import event_line, write_lines
from tests.loaded_tables import load_tables
from tests.oracles import report_recount as recount
from tests.oracles.effort import seeds
from tests.oracles.hostile_events import NOON, HostileArchive

NOW = NOON + timedelta(days=3)
TIMES = [
    {},
    {"since": "2026-03-09", "until": "2026-03-10"},
    {"since": "2026-03-08T22:30Z", "until": "2026-03-09T13:10Z"},
]


def inside(events: list[Any], period: Period) -> list[Any]:
    return [event for event in events if period.since <= event.at < period.until]


def near(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-12))


def check(report: Report, folder: Path) -> None:
    """Compare every section of a report with a recount of its files."""
    lines = recount.read(folder)
    assert report.period is not None
    assert report.compared is not None
    before = report.compared.before
    earliest = min(report.period.since, before.since if before else report.period.since)
    own = inside(lines.events, report.period)
    heard = inside(lines.events, Period(earliest, report.period.until))  # also the time before
    assert (report.events, report.errors) == (len(own), sum(event.is_error for event in own))
    assert report.quarantined == sum(row.lines for row in report.quarantine)
    if report.source == "files" or len(own) == len(lines.events):  # in tables, invalid lines are of the day of the load
        assert report.quarantined == lines.bad
    if len(own) == len(lines.events):
        assert report.duplicates == lines.copies
    check_channels(report, own)
    check_metrics(report, own)
    check_streams(report, own, heard)
    check_runs(report, heard)
    # failures may have begun before all times of the report
    check_failures(report, [event for event in lines.events if event.at < report.period.until])
    check_times(report, own, heard)


def check_channels(report: Report, own: list[Any]) -> None:
    channels = recount.groups(own, lambda event: (event.channel, event.level))
    assert {(row.channel, row.level): (row.events, row.errors, row.first, row.last) for row in report.channels} == {
        key: (
            len(found),
            sum(event.is_error for event in found),
            min(event.at for event in found),
            max(event.at for event in found),
        )
        for key, found in channels.items()
    }
    waits = recount.waits(own)
    assert {row.stage: (row.read, row.write) for row in report.waiting} == {
        stage: (found["pipe_read_wait_seconds"], found["pipe_write_wait_seconds"]) for stage, found in waits.items()
    }


def check_metrics(report: Report, own: list[Any]) -> None:
    measured = recount.metrics(own)
    found = recount.groups(measured, lambda one: (one.name, one.type))
    assert {(row.metric, row.type) for row in report.metrics} == set(found)
    for row in report.metrics:
        values = [one.value for one in found[row.metric, row.type]]
        assert (row.count, row.low, row.high) == (len(values), min(values), max(values))
        assert near(row.sum, math.fsum(values))
        shares = [None if row.type == "counter" else recount.share(values, rank) for rank in (0.5, 0.95, 0.99)]
        assert [row.p50, row.p95, row.p99] == shares
    timed = [one for one in measured if one.name == "http_request_duration"]
    requests = recount.groups(timed, lambda one: (one.tags["endpoint"], one.tags["status"]))
    assert {(row.endpoint, row.status): (row.requests, row.seconds, row.p95) for row in report.requests} == {
        key: (len(some), sum(one.value for one in some), recount.share((one.value for one in some), 0.95))
        for key, some in requests.items()
    }


def check_streams(report: Report, own: list[Any], heard: list[Any]) -> None:
    expected = recount.stream_stats(own, heard)
    assert {row.stream for row in report.streams} == set(expected)
    for row in report.streams:
        apps, records, size, timers, spent, shares, rate = expected[row.stream]
        assert (row.stream, row.applications, row.records, row.bytes) == (row.stream, apps, records, size)
        assert row.timer in timers or (row.timer is None and not timers)
        assert near(row.seconds, spent)
        if len(timers) < 2:
            assert ([row.p50, row.p95], near(row.rate, rate)) == (shares, True)


def check_runs(report: Report, heard: list[Any]) -> None:
    until = report.period.since if report.period is not None else None
    expected = {
        run: stats
        for run, stats in recount.run_stats(heard).items()
        if until is not None and stats[2] >= until  # a run is of the time of its last event
    }
    assert {row.run_id for row in report.runs} == set(expected)
    for row in report.runs:
        names = "applications started ended duration outcome exit_code records bytes events errors"
        found = tuple(getattr(row, name) for name in names.split())
        assert found == (*expected[row.run_id][:3], pytest.approx(expected[row.run_id][3]), *expected[row.run_id][4:])
    outcomes = [stats[4] for stats in expected.values()]
    totals = {"runs": len(outcomes), "failed_runs": outcomes.count("failed"), "unknown_runs": outcomes.count("unknown")}
    assert {name: report.totals[name] for name in totals} == totals
    for stream in report.streams:
        runs = {run for run, _ in recount.reports(heard)} & set(expected)
        latest = [e for (run, _), e in recount.reports(heard).items() if run in runs]
        named = {
            e.run
            for e in latest
            if any(s["stream"][: recount.KEY] == stream.stream for s in e.payload.get("streams", []))
        }
        ends = [expected[run][2] for run in named if expected[run][4] == "succeeded"]
        assert (stream.all_runs, stream.succeeded) == (len(named), max(ends, default=None))
        assert stream.age == (max((report.made - max(ends)).total_seconds(), 0.0) if ends else None)


def check_failures(report: Report, heard: list[Any]) -> None:
    assert report.period is not None
    own = recount.failure_stats(inside(heard, report.period))
    all_seen = recount.failure_stats(heard)
    assert report.totals["failures"] == len(own)
    assert {(row.message, row.error_type) for row in report.failures} == set(own)
    for row in report.failures:
        key = row.message, row.error_type
        events, first, last, apps, channels, _level, example = own[key]
        assert (row.events, row.last, row.applications, row.channels) == (events, last, apps, channels)
        assert (row.first, row.level) == (all_seen[key][1], all_seen[key][5])
        assert row.example is not None
        assert (row.example.id, row.example.timestamp) == (example, first)


def check_times(report: Report, own: list[Any], heard: list[Any]) -> None:
    assert report.period is not None
    assert report.compared is not None
    since, step = report.period.since, timedelta(seconds=report.step)

    def key(at: datetime) -> Any:
        edge = report.compared.now.since if step < timedelta(days=1) else since  # type: ignore[union-attr]
        edge = edge.replace(hour=0) if step == timedelta(days=1) else edge
        return edge + (at - edge) // step * step

    counts = recount.groups(own, lambda event: key(event.at))
    records = recount.records_by(heard, key)
    assert [(row.at, row.events, row.errors, row.records) for row in report.throughput] == [
        (at, len(found), sum(event.is_error for event in found), int(records.get(at, 0)))
        for at, found in sorted((at, found) for at, found in counts.items())
    ]
    stats = {stat.name: (stat.now, stat.before) for stat in report.health}
    sides = [report.compared.now, report.compared.before]
    of_sides = [inside(heard, side) if side is not None else None for side in sides]
    assert stats["events"] == tuple(None if side is None else len(side) for side in of_sides)
    for place, side in enumerate(sides):
        if side is not None:
            moved = recount.records_by(heard, lambda at, side=side: side.since <= at < side.until)
            assert near(stats["records"][place], moved.get(True, 0))
            assert stats["errors"][place] == sum(event.is_error for event in of_sides[place] or [])
            timed = [one.value for one in recount.metrics(of_sides[place] or []) if one.name == "http_request_duration"]
            assert near(stats["request time, p95"][place], recount.share(timed, 0.95) if timed else None)
            ran = [run for run in recount.run_stats(heard).values() if side.since <= run[2] < side.until]
            assert stats["runs"][place] == len(ran)
            assert stats["failed runs"][place] == sum(run[4] == "failed" for run in ran)
            assert near(stats["run time, p95"][place], recount.between([run[3] for run in ran], 0.95) if ran else None)


@pytest.mark.parametrize("times", TIMES, ids=["all", "day", "minutes"])
@pytest.mark.parametrize("seed", seeds(2))
def test_every_section_is_what_plain_python_counts_with_duckdb(
    tmp_path: Path, seed: int, times: dict[str, str]
) -> None:
    HostileArchive(random.Random(seed)).write(tmp_path, edited="T" not in str(times))
    made = make_raw_report([str(tmp_path)], parse_query(**times, now=NOW))
    check(made, tmp_path)
    assert encode(made)


def test_more_rows_than_a_list_has_change_no_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("balog.analytics.reporting.queries.MOST_ROWS", 4)
    lines = []
    for number in range(48):  # 12 applications, each with two events a day; one has none on the second day
        at = NOON + timedelta(days=number % 2, minutes=number)
        application = f"tap-{number // 2 % 12}" if number != 25 else "tap-0"
        payload = {"cls_type": "log", "message": "m"}
        lines.append(event_line(f"LG{number:022d}", at, payload, application=application))
    write_lines(tmp_path / "a.jsonl", lines)
    made = make_raw_report([str(tmp_path)], parse_query(since="2026-03-10", until="2026-03-11", now=NOW))
    assert [(row.channel, row.level, row.events) for row in made.channels] == [("c", "INFO", 24)]
    assert [finding.words for finding in made.findings if finding.kind == "silent"] == []


def test_percentiles_of_files_are_within_the_promise_and_exact_up_to_the_limit(tmp_path: Path) -> None:
    chance = random.Random(5)
    values = {
        "few": [chance.lognormvariate(0, 2) for _ in range(1000)],
        "many": [chance.expovariate(3) for _ in range(9000)],
    }
    for part in range(3):
        lines = []
        for name, found in values.items():
            for number, value in list(enumerate(found))[part::3]:
                payload = {"cls_type": "metric", "type": "timer", "metric": name, "value": value}
                lines.append(event_line(f"{name}-{number}", NOON, payload))
        write_lines(tmp_path / f"{part}.jsonl", lines)
    rows = {row.metric: row for row in make_raw_report([str(tmp_path)], parse_query(now=NOW)).metrics}
    few = rows["few"]
    assert [few.p50, few.p95, few.p99] == [recount.share(values["few"], rank) for rank in (0.5, 0.95, 0.99)]
    ranked = sorted(values["many"])
    for rank, value in ((0.5, rows["many"].p50), (0.95, rows["many"].p95), (0.99, rows["many"].p99)):
        assert value in values["many"]
        assert abs(bisect_right(ranked, value) / len(ranked) - rank) <= 2 * RANK_ERROR


@pytest.mark.spark
def test_every_section_of_tables_is_what_plain_python_counts_on_both_engines(spark: Any, tmp_path: Path) -> None:
    """Loaded in two parts, so that copies and late events meet what is stored already."""
    source, tables = tmp_path / "source", str(tmp_path / "tables")
    source.mkdir()
    HostileArchive(random.Random(11)).write(source, edited=False)
    for number in (0, 1, 2):
        load_tables(spark, tables, [source / f"{number}.jsonl"])
    for times in TIMES[:2]:
        query = parse_query(**times, now=NOW)
        for made in (make_report(spark, [tables], query), make_local_report(tables, query)):
            assert made is not None
            check(msgspec.structs.replace(made, duplicates=recount.read(source).copies), source)


@pytest.mark.spark
@pytest.mark.parametrize("times", TIMES, ids=["all", "day", "minutes"])
def test_every_section_is_what_plain_python_counts_with_spark(
    spark: Any, tmp_path: Path, times: dict[str, str]
) -> None:
    HostileArchive(random.Random(7)).write(tmp_path, edited="T" not in str(times))
    check(make_report(spark, [str(tmp_path)], parse_query(**times, now=NOW)), tmp_path)
