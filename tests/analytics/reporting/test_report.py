"""The report of a day of trouble, of all times, of absurd numbers, and out of tables; its oracle recounts sections."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics import functions, rollups
from balog.analytics.reporting.model import VERSION, Report, encode
from balog.analytics.reporting.page import make_page
from balog.analytics.reporting.query import ReportQuery, parse_query
from balog.analytics.reporting.report import make_raw_report
from balog.analytics.reporting.spark_report import make_report
from balog.analytics.tables import open_tables
from tests.ci_scripts import ci_script
from tests.event_lines import event_line, write_lines
from tests.loaded_tables import load_tables

write_schema = ci_script("config_schemas").write_schema

pytestmark = pytest.mark.spark

NOW = datetime(2026, 11, 20, 14, 37, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def test_the_report_as_json_meets_its_schema_which_is_what_its_structs_say(today: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    path = Path(__file__).parents[3] / "schemas" / "report" / f"{VERSION}.json"
    made = write_schema(Report, f"urn:balog:report:{VERSION}", "The report as balog report --json prints it")
    assert path.read_bytes() == made, (
        'write it anew with: PYTHONPATH=.ci python -c "from config_schemas import write_schema; '
        "from balog.analytics.reporting.model import Report; "
        f"open('schemas/report/{VERSION}.json', 'wb').write(write_schema(Report, "
        f"'urn:balog:report:{VERSION}', 'The report as balog report --json prints it'))\""
    )
    jsonschema.Draft202012Validator(json.loads(made)).validate(json.loads(encode(today)))


# -- a day of trouble ---------------------------------------------------------------------------------------------

TODAY = datetime(2026, 11, 20, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def trouble(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days: on the second requests are slower from 06:00 on, a new failure comes, one tap is silent, one fails."""
    lines = []

    def event(when: datetime, app: str, run: str, kind: str, level: str, payload: dict[str, Any]) -> None:
        identity, channel = f"LG{len(lines):022d}", f"{app}.{kind}"
        lines.append(event_line(identity, when, payload, channel=channel, level=level, application=app, run_id=run))

    for hour in range(48):
        at, late = TODAY - 24 * HOUR + hour * HOUR, hour >= 30
        for app in ("tap_a", "tap_b") if hour < 24 else ("tap_a",):
            for number in range(6):
                tags = {"endpoint": f"/{app}", "http_status_code": 200}
                metric = {"cls_type": "metric", "type": "timer", "metric": "http_request_duration", "tags": tags}
                value = (5.0 if late else 1.0) + number / 10
                event(at, app, f"{app}-{hour}", "metric", "INFO", {**metric, "value": value})
            outcome = "failed" if late and hour % 2 else "succeeded"
            if outcome == "failed":
                log = {"cls_type": "log", "message": f"no answer from 10.0.0.{hour}"}
                event(at, app, f"{app}-{hour}", "log", "ERROR", log)
            event(at, app, f"{app}-{hour}", "log", "ERROR", {"cls_type": "log", "message": f"row {hour} refused"})
            run = {"cls_type": "run", "command": app, "outcome": outcome, "duration": 2.0, "exit_code": 0}
            event(at, app, f"{app}-{hour}", "run", "INFO", {**run, "records": 10})
    folder = tmp_path_factory.mktemp("trouble")
    write_lines(folder / "a.jsonl", lines)
    return folder


@pytest.fixture(scope="module")
def today(spark: Any, trouble: Path) -> Report:
    return make_report(spark, [str(trouble)], parse_query(since="2026-11-20", now=NOW), files=1)


def test_what_is_new_silent_slower_and_failing_is_found(today: Report) -> None:
    found = {finding.kind: finding for finding in today.findings}
    assert found["failed_runs"].words == "tap_a: 9 of 24 runs failed; 0 of 24 before"
    assert found["new_failure"].words == "New: no answer from <n>, 9 times"
    assert found["new_failure"].since == TODAY + 7 * HOUR
    assert found["slower"].words == "Slower: requests to /tap_a: p95 is 5.500 s, was 1.500 s (3.7 ×)"
    assert found["slower"].since == TODAY + 6 * HOUR
    assert found["silent"].words == "Silent: tap_b sent no event, 192 before"
    assert len(found) == len(today.findings)


def test_a_failure_is_new_when_it_was_not_seen_before(today: Report) -> None:
    assert {one.message: (one.new, one.now, one.before) for one in today.failures} == {
        "no answer from <n>": (True, 9, 0),
        "row <n> refused": (False, 24, 48),
    }
    new = today.failures[0]
    assert new.example is not None
    assert new.example.message == "no answer from 10.0.0.31"
    assert new.example.run_id == "tap_a-31"
    runs = {run.run_id: run for run in today.runs}
    assert new.fingerprint in runs["tap_a-31"].failures
    assert set(new.runs) == {run_id for run_id, run in runs.items() if run.outcome == "failed"}


def test_lists_are_of_what_was_asked_for_and_not_of_the_day_before(today: Report) -> None:
    assert today.period is not None
    assert today.period.since == TODAY
    assert today.events == 24 * 8 + 9
    assert {run.run_id for run in today.runs} == {f"tap_a-{hour}" for hour in range(24, 48)}
    assert {row.channel for row in today.channels} == {"tap_a.metric", "tap_a.log", "tap_a.run"}
    assert [(row.endpoint, row.requests) for row in today.requests] == [("/tap_a", 24 * 6)]
    health = {figure.name: (figure.now, figure.before, figure.verdict) for figure in today.health}
    assert health["errors"] == (33, 48, "same")
    assert health["failed runs"] == (9, 0, "worse")
    assert health["records"] == (240, 480, "unknown")
    assert health["run time, p95"] == (2.0, 2.0, "same")
    assert health["request time, p95"] == (5.5, 1.5, "worse")


def test_a_condition_holds_for_every_list(trouble: Path) -> None:
    condition = "channel LIKE 'tap__.%' AND cls_type <> 'metric' AND context.run_id <> 'tap_a-47'"
    asked = parse_query(since="2026-11-20T06:00:00Z", where=condition, compare="none", now=NOW)
    found = make_raw_report([str(trouble)], asked)
    assert found.conditions == [f"where {condition}"]
    assert (found.requests, found.findings, len(found.runs)) == ([], [], 17)
    assert sum(row.events for row in found.channels) == found.events == 17 * 2 + 8


@pytest.mark.parametrize("tables", [False, True])
def test_events_of_all_times_are_counted_once_each(spark: Any, tmp_path: Path, tables: bool) -> None:
    oldest, newest = (end.replace(tzinfo=timezone.utc) for end in (datetime.min, datetime.max))
    moments = [oldest + HOUR * hours for hours in (0, 0.5, 1, 2, 30, 60)]
    moments += [datetime(1500, 6, day, tzinfo=timezone.utc) for day in (1, 5, 20)] + [TODAY, newest]
    sources = []
    for name, some in (("first", moments[:1]), ("last", moments[-1:]), ("all", moments)):
        payload = {"cls_type": "log", "message": "m"}
        lines = [event_line(f"{name}{number}", at, payload, level="ERROR") for number, at in enumerate(some)]
        write_lines(tmp_path / name / "a.jsonl", lines)
        sources.append(str(tmp_path / name))
        if tables and name == "all":
            load_tables(spark, f"{sources[-1]}-tables", [sources[-1]])
            sources[-1] += "-tables"

    def made(path: str, query: ReportQuery) -> Report:
        return make_report(spark, [path], query) if tables else make_raw_report([path], query)

    assert tables or [made(path, parse_query(now=NOW)).events for path in sources[:2]] == [1, 1]
    for since, until in (("", "0001-01-02"), ("0001-01-01T02:00Z", "1500-06-10"), ("1500-06-05", "2000-01-01")):
        question = parse_query(since, until, compare="7d", now=NOW)
        first, last = question.since or oldest, question.until
        assert last is not None
        wanted = sum(first <= moment < last for moment in moments)
        found = made(sources[2], question)
        assert (found.events, len(found.failures)) == (wanted, 1)
        assert make_page(found)
        if tables:
            some = functions.between(open_tables(spark, sources[2]), question.since, last)
            assert some.events.agg({"events": "sum"}).collect()[0][0] == wanted


def test_numbers_that_cannot_be_stop_neither_a_report_nor_a_question(spark: Any, tmp_path: Path) -> None:
    most = 2**63 - 1
    streams = [{"stream": "s", "records": most, "bytes": most}]
    numbers = dict.fromkeys(("exit_code", "records", "bytes"), most)
    run = {"cls_type": "run", "outcome": "failed", "streams": streams, **numbers}
    payloads = [{**run, "duration": took} for took in ("NaN", "Infinity", -1e300, 1e300, 2.5)]
    for name, kind in (("record_count", "counter"), ("pipe_bytes", "counter"), ("sync_duration", "timer")):
        tags = {"stream": "s", "stage": "a"}
        payloads += [{"cls_type": "metric", "type": kind, "metric": name, "value": 1.7e308, "tags": tags}] * 2
    lines = (
        event_line(f"LG{number:022d}", TODAY, payload, application=f"t{number}", run_id="r")
        for number, payload in enumerate(payloads)
    )
    write_lines(tmp_path / "a.jsonl", lines)
    found = make_report(spark, [str(tmp_path)], parse_query(now=NOW))
    assert [(row.run_id, row.outcome, row.duration, row.records) for row in found.runs] == [
        ("r", "failed", 2.5, 5.0 * 2**63)
    ]
    (stream,) = found.streams
    # counters of the stream without a finite sum; the reports of all applications have bytes
    assert (stream.records, stream.bytes, stream.seconds, stream.rate) == (None, 5.0 * 2**63, None, None)
    assert {row.metric: (row.count, row.sum, row.high) for row in found.metrics} == dict.fromkeys(
        ("record_count", "pipe_bytes", "sync_duration"), (2, None, 1.7e308)
    )
    document = json.loads(encode(found))
    assert document["events"] == len(payloads)
    jsonschema = pytest.importorskip("jsonschema")
    schema = Path(__file__).parents[3] / "schemas" / "report" / f"{VERSION}.json"
    jsonschema.Draft202012Validator(json.loads(schema.read_bytes())).validate(document)
    assert make_page(found)
    rows = rollups.from_files(spark, [str(tmp_path)])
    for question in (functions.runs, functions.streams):
        assert question(rows).collect()


def test_tables_answer_as_files_do(spark: Any, trouble: Path, today: Report, tmp_path: Path) -> None:
    place = str(tmp_path / "tables")
    load_tables(spark, place, [trouble])
    stored = make_report(spark, [place], parse_query(since="2026-11-20", now=NOW))
    assert stored.source == "rollups"
    assert plain(stored) == plain(today)
    asked = parse_query(since="2026-11-20", where="level IS NOT NULL", now=NOW)
    events = make_report(spark, [place], asked)
    assert events.source == "events"
    assert plain(events) == plain(today)


def plain(report: Report) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.to_builtins(report)
    for name in ("sources", "source", "files", "conditions"):
        del whole[name]
    return whole
