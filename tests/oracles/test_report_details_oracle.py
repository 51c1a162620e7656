"""The report's details of runs, failures and streams, against a recount in plain Python of generated events."""

import random
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics.reporting.model import MOST_DAYS, MOST_LINES, MOST_STREAM_RUNS
from balog.analytics.reporting.query import parse_query
from balog.analytics.reporting.spark_report import make_report
from tests.event_lines import event_line, write_lines
from tests.oracles.effort import seeds

pytestmark = pytest.mark.spark

NOW = datetime(2026, 11, 20, 14, 37, tzinfo=timezone.utc)
WORDS = ["lost", "refused", "it's broken", "é"]


def generated(chance: random.Random) -> list[dict[str, Any]]:
    """Return events of runs, each of one or two applications, of which most report streams at their end."""
    events: list[dict[str, Any]] = []

    def add(at: datetime, run: str, application: str, level: str, **payload: Any) -> None:
        number = len(events)
        event = {"id": f"LG{number:022d}", "at": at, "run": run, "app": application, "level": level, **payload}
        events.append(event)

    for number in range(60):
        run, begun = f"run {number}", NOW - timedelta(days=chance.uniform(0, 45))
        lasts = timedelta(seconds=chance.randrange(10, 7000), microseconds=chance.choice([0, 1, 999_999]))
        for application in chance.sample(["tap", "target", "é"], chance.randint(1, 2)):
            for _ in range(chance.randrange(8)):
                message = chance.choice(WORDS)
                level = chance.choice(["INFO", "ERROR", "CRITICAL"])
                add(begun + lasts * chance.random(), run, application, level, message=message)
            add(begun, run, application, "INFO", message="begun")
            add(begun + lasts, run, application, "INFO", message="ended")
        if chance.random() < 0.8:
            streams = [{"stream": name, "records": chance.randrange(1000), "bytes": chance.randrange(10**6)}
                       for name in chance.sample(["users", "orders", "it's"], chance.randint(1, 3))]  # fmt: skip
            add(begun + lasts, run, "tap", "INFO", outcome=chance.choice(["succeeded", "failed"]),
                duration=lasts.total_seconds(), streams=streams)  # fmt: skip
    chance.shuffle(events)
    return events


def written(event: dict[str, Any]) -> str:
    payload = {name: event[name] for name in ("message", "outcome", "duration", "streams") if name in event}
    payload["cls_type"] = "run" if "outcome" in event else "log"
    context = {"run_id": event["run"], "application": event["app"]}
    return event_line(event["id"], event["at"], payload, level=event["level"], **context)


@pytest.mark.parametrize("seed", seeds(2))
def test_runs_failures_and_streams_are_what_plain_python_counts(spark: Any, tmp_path: Path, seed: int) -> None:
    """Timelines, error lines, days and runs by stream, with duplicates and files in any order."""
    events = generated(random.Random(seed))
    lines = [written(event) for event in events]
    write_lines(tmp_path / "a.jsonl", lines[::2])
    write_lines(tmp_path / "b.jsonl", [*lines[1::2], lines[1]])
    found = make_report(spark, [str(tmp_path)], parse_query(now=NOW))

    errors = [event for event in events if event["level"] in ("ERROR", "CRITICAL")]
    kept: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in errors:
        hour = event["at"].replace(minute=0, second=0, microsecond=0)
        kept[event["message"], event["app"], event["level"], hour].append(event)
    firsts = [(min(group, key=lambda one: (one["at"], one["id"])), len(group)) for group in kept.values()]

    assert {run.run_id for run in found.runs} == {event["run"] for event in events}
    for run in found.runs:
        own = [event for event in events if event["run"] == run.run_id]
        parts = {(part.application, part.first, part.last, part.events, part.errors) for part in run.parts}
        assert parts == {
            (
                name,
                min(event["at"] for event in own if event["app"] == name),
                max(event["at"] for event in own if event["app"] == name),
                sum(event["app"] == name for event in own),
                sum(event["app"] == name and event in errors for event in own),
            )
            for name in {event["app"] for event in own}
        }
        assert [part.first for part in run.parts] == sorted(part.first for part in run.parts)
        assert run.ended == max(event["at"] for event in own)
        expected = sorted((one["at"], one["id"], count) for one, count in firsts if one["run"] == run.run_id)
        assert [(line.at, line.id, line.events) for line in run.lines] == expected[:MOST_LINES]
        assert {line.fingerprint for line in run.lines} <= set(run.failures)

    assert {failure.message for failure in found.failures} == {event["message"] for event in errors}
    for failure in found.failures:
        own = [event for event in errors if event["message"] == failure.message]
        days: dict[Any, int] = defaultdict(int)
        for event in own:
            days[event["at"].replace(hour=0, minute=0, second=0, microsecond=0)] += 1
        assert [(day.day, day.events) for day in failure.days] == sorted(days.items(), reverse=True)[:MOST_DAYS]
        assert failure.all_days == len(days)
        latest = sorted((one["at"] for one, _ in firsts if one["message"] == failure.message), reverse=True)
        assert [line.at for line in failure.lines] == latest[:MOST_LINES]
        assert {(line.run_id, line.message) for line in failure.lines} <= {(e["run"], e["message"]) for e in own}

    reports = [event for event in events if "outcome" in event]
    assert {stream.stream for stream in found.streams} == {one["stream"] for e in reports for one in e["streams"]}
    for stream in found.streams:
        own = [(event, one) for event in reports for one in event["streams"] if one["stream"] == stream.stream]
        own.sort(key=lambda pair: pair[0]["at"] - timedelta(seconds=pair[0]["duration"]), reverse=True)
        rows = [(run.run_id, run.outcome, run.records, run.bytes) for run in stream.runs]
        assert rows == [(e["run"], e["outcome"], one["records"], one["bytes"]) for e, one in own[:MOST_STREAM_RUNS]]
        assert [run.rate for run in stream.runs] == pytest.approx(
            [one["records"] / event["duration"] for event, one in own[:MOST_STREAM_RUNS]]
        )
        assert stream.all_runs == len(own)
        ends = [event["at"] for event, _ in own if event["outcome"] == "succeeded"]
        assert stream.succeeded == max(ends, default=None)
        assert stream.age == (NOW - max(ends)).total_seconds()
