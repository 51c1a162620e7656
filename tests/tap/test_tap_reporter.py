"""What a tap says of its own run: lines, metrics, the report."""

import json
import os
import subprocess
import sys

import pytest

from balog.event.payload import read
from balog.tap import Tap
from balog.tap.errors import SyncError
from balog.tap.streams import Stream
from balog.tap.syncing import reporter as reporter_module
from balog.tap.syncing.reporter import Reporter
from balog.tap.syncing.session import SyncStats
from tests.tap.syncs import sync


def counts(records, new=None, updated=None):
    made = SyncStats()
    made.records, made.new, made.updated = records, new, updated
    return made


def started(*, version=""):
    """Return a reporter to which a stream was reported, and the stream's numbers."""
    reporter, rows = Reporter("tap-cool", version), counts(0)
    reporter.begin(["contacts"])
    reporter.started(Stream("contacts"), rows)
    return reporter, rows


def report_in(events):
    (event,) = [event for event in events if event.cls_type == "run"]
    return event, read(event)


def test_a_run_is_told_from_its_start_to_its_end(events):
    reporter, rows = started(version="1.2.0")
    rows.records = 1200
    reporter.ended(Stream("contacts"), rows, None)
    reporter.finish(0)

    said = [event.payload["message"] for event in events if event.cls_type == "log"]
    assert [text.partition(" in ")[0] for text in said] == [
        "Starting tap-cool 1.2.0",
        "Starting sync of stream contacts",
        "Finished sync of stream contacts: 1,200 records",
    ]
    assert {event.header.channel.partition(".")[0] for event in events if event.cls_type != "metric"} == {"tap-cool"}


def test_rows_and_time_of_a_stream_are_metrics_under_the_names_that_taps_share(events):
    reporter, rows = started()
    rows.records = 7
    reporter.ended(Stream("contacts"), rows, None)

    points = [event.payload for event in events if event.cls_type == "metric"]
    assert [(p["type"], p["metric"], p["tags"]) for p in points] == [
        ("counter", "record_count", {"endpoint": "contacts"}),
        ("timer", "job_duration", {"job_type": "sync_contacts", "status": "succeeded"}),
    ]
    assert points[0]["value"] == 7


def test_rows_are_handed_on_while_a_stream_goes_on(events):
    """Given a stream that is not over when a minute is, then what came is written, and the rest at the end."""
    reporter, rows = started()
    rows.records = 5
    (held,) = reporter._streams.values()
    assert held in reporter_module._ticker._watched
    held.flush()
    rows.records = 8
    reporter.ended(Stream("contacts"), rows, None)

    deltas = [event.payload["value"] for event in events if event.payload.get("metric") == "record_count"]
    assert deltas == [5, 3]


def test_the_report_says_rows_by_stream_and_why_one_failed(events):
    reporter = Reporter("tap-cool")
    for name, rows, error in (
        ("contacts", counts(9, 2, 7), None),
        ("notes", counts(4), SyncError("notes", "HTTP 500")),
    ):
        reporter.started(Stream(name), rows)
        reporter.ended(Stream(name), rows, error)
    reporter.finish(1)

    event, report = report_in(events)
    assert (event.level, event.header.channel) == ("ERROR", "tap-cool.run")
    assert (report.outcome, report.exit_code, report.command, report.records) == ("failed", 1, "tap-cool", 13)
    assert report.problem == "notes: HTTP 500"
    assert event.payload["streams"] == [
        {"stream": "contacts", "records": 9, "new": 2, "updated": 7},
        {"stream": "notes", "records": 4, "problem": "HTTP 500"},
    ]
    timers = [e.payload["tags"] for e in events if e.payload.get("type") == "timer"]
    assert [tags["status"] for tags in timers] == ["succeeded", "failed"]


def test_a_stream_that_was_cut_short_is_in_the_report_with_what_it_gave(events):
    reporter, rows = started()
    rows.records = 3
    reporter.finish(143)

    _, report = report_in(events)
    assert (report.exit_code, report.records, report.problem) == (143, 3, "contacts: interrupted")
    assert [e.payload["value"] for e in events if e.payload.get("metric") == "record_count"] == [3]


def test_a_stream_that_never_began_is_told_of(events):
    reporter = Reporter("tap-cool")
    reporter.finish(1, failures=[SyncError("notes", "its bookmark is no time")])
    assert report_in(events)[1].problem == "notes: its bookmark is no time"


def test_records_that_were_set_aside_are_told_of(events, tmp_path):
    """Given a record that breaks its schema under the policy quarantine, then the report has it."""
    tap = Tap("tap-cool", quarantine=str(tmp_path / "aside.jsonl"))
    reporter = Reporter("tap-cool")
    tap.stream("contacts", key_properties=["id"], policy="quarantine")(lambda: [{"id": "x"}, {"id": 2}])
    sync(tap, observer=reporter)
    reporter.finish(0)
    event, _ = report_in(events)
    assert event.payload["streams"] == [{"stream": "contacts", "records": 1, "new": 1, "updated": 0, "quarantined": 1}]


def test_a_problem_that_is_no_streams_is_the_reports(events):
    reporter = Reporter("tap-cool")
    reporter.finish(1, "the target has gone")
    assert report_in(events)[1].problem == "the target has gone"


SCRIPT = """
from balog.tap.syncing.reporter import Reporter
from balog.tap.streams import Stream
from balog.tap.syncing.session import SyncStats
reporter, rows = Reporter("tap-cool"), SyncStats()
reporter.started(Stream("contacts"), rows)
rows.records, rows.new, rows.updated = 9, 2, 7
print('{"type":"RECORD","stream":"contacts","record":{}}')
reporter.ended(Stream("contacts"), rows, None)
reporter.finish(0)
"""


class TestUnderTheSidecar:
    @pytest.mark.parametrize("output", ["stderr", "singer"])
    def test_a_run_is_reported_once(self, output, tmp_path):
        environment = {**os.environ, "BALOG_OUTPUT": output}
        command = [sys.executable, "-m", "balog", "run", "--name", "tap-cool", "--", sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, capture_output=True, env=environment, check=True)
        logs = [json.loads(line) for line in done.stdout.splitlines() if b'"LOG"' in line]
        (report,) = [log["value"]["payload"] for log in logs if log["value"]["payload"]["cls_type"] == "run"]
        assert report["records"] == 1  # as the stream has it, which the sidecar looks at here
        assert report["command"] == "tap-cool"
        assert report["streams"][0].get("new") == (2 if output == "stderr" else None)


def test_events_of_a_program_are_its_tap_s(tmp_path):
    """Given a tap whose program has another name, then its events say the tap's; the first and the last are LOG."""
    tap = """
from balog.tap import Tap
tap = Tap("tap-cool")
tap.stream("contacts", schema={"type": "object"})(lambda: [{"id": 1}])
tap.run()
"""
    environment = {**os.environ, "BALOG_OUTPUT": "singer"}
    done = subprocess.run([sys.executable, "-c", tap], capture_output=True, env=environment, check=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    headers = [message["value"]["header"] for message in messages if message["type"] == "LOG"]
    assert {header["context"]["application"] for header in headers} == {"tap-cool"}
    assert {header["channel"] for header in headers} == {"tap-cool", "tap-cool.metric", "tap-cool.run"}
    assert messages[0]["type"] == messages[-1]["type"] == "LOG"
