"""Recounts a report in plain Python from the lines of its files, sharing no code with it."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

KEY = 1000  # characters of a key
ERRORS = ("ERROR", "CRITICAL")


class CountedEvent(NamedTuple):
    """An event, and what the recount reads of it."""

    id: str
    at: datetime
    channel: str
    level: str
    app: str | None
    run: str | None
    kind: str | None
    payload: dict[str, Any]

    @property
    def is_error(self) -> bool:
        return self.level in ERRORS


class CountedMetric(NamedTuple):
    """One finite value of a metric."""

    event: CountedEvent
    name: str
    type: str
    value: float
    tags: dict[str, str | None]


class Lines(NamedTuple):
    """The events of files, each id once at its earliest time; how many copies and how many invalid lines there are."""

    events: list[CountedEvent]
    copies: int
    bad: int


def read(folder: Path) -> Lines:
    """Read the events of files."""
    found: dict[str, CountedEvent] = {}
    copies = bad = 0
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            try:
                document = json.loads(line)
                header, payload = document["header"], document["payload"]
                at = datetime.fromisoformat(header["timestamp"]).astimezone(timezone.utc)
            except (ValueError, KeyError, TypeError):
                bad += 1
                continue
            context = header["context"]
            app, run = (_cut(context.get(name)) for name in ("application", "run_id"))
            named = header["id"], at, header["channel"], header["level"], app, run, payload.get("cls_type"), payload
            copies += named[0] in found
            known = found.get(named[0])
            found[named[0]] = CountedEvent(*named) if known is None or at < known.at else known
    return Lines(list(found.values()), copies, bad)


def _cut(name: Any) -> str | None:
    return None if name is None else str(name)[:KEY]


def number(value: Any) -> float | None:
    """Return a finite double; texts of numbers count, booleans and others don't."""
    if value is None or isinstance(value, (bool, dict, list)):
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def metrics(events: Iterable[CountedEvent]) -> list[CountedMetric]:
    """Return the values of events of the types metric and metrics."""
    found = []
    for event in events:
        payload = event.payload
        if event.kind == "metric" and (value := number(payload["value"])) is not None:
            tags = payload.get("tags", {})
            named = {name: _cut(tags.get(name)) for name in ("stream", "endpoint", "stage")}
            named["status"] = _cut(tags.get("http_status_code", tags.get("status")))
            found.append(CountedMetric(event, payload["metric"], payload["type"], value, named))
        elif event.kind == "metrics":
            for item in payload["values"]:
                if isinstance(item, dict) and (value := number(item["value"])) is not None:
                    found.append(
                        CountedMetric(
                            event,
                            item["name"],
                            "value",
                            value,
                            dict.fromkeys(("stream", "endpoint", "stage", "status")),
                        )
                    )
    return found


def groups(rows: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Group rows by a key."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def share(values: Iterable[float], rank: float) -> float:
    """Return a percentile by the nearest rank."""
    ordered = sorted(values)
    return ordered[max(math.ceil(rank * len(ordered)) - 1, 0)]


def between(values: list[float], rank: float) -> float:
    """Return a percentile interpolated between the two values next to the rank."""
    ordered, place = sorted(values), rank * (len(values) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def reports(events: Iterable[CountedEvent]) -> dict[tuple[str, str | None], CountedEvent]:
    """Return the latest report of each application of each run.

    At one time, it is that with the greatest outcome, duration, exit code, records and bytes; missing ones are least.
    """

    def order(event: CountedEvent) -> tuple[Any, ...]:
        took, code, records, size = (event.payload.get(name) for name in ("duration", "exit_code", "records", "bytes"))
        duration = -math.inf if took is None else math.inf if took == "nan" else float(took)
        numbers = (0 if code is None else code, -1 if records is None else records, -1 if size is None else size)
        streams = [
            (one["stream"], one.get("records", -1), one.get("bytes", -1)) for one in event.payload.get("streams", [])
        ]
        return event.at, event.payload.get("outcome", ""), duration, *numbers, streams

    own = groups((event for event in events if event.kind == "run" and event.run is not None), lambda e: (e.run, e.app))
    return {key: max(found, key=order) for key, found in own.items()}


def total(values: Iterable[float | Fraction | None]) -> float | None:
    """Return the sum of the numbers that are there; None if none is. Sums of whole numbers are exact."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    found = sum(there)
    return found if abs(found) < 2**63 else float(found)


def duration(event: CountedEvent) -> float | None:
    """Return the duration of a report if it is plausible."""
    took = event.payload.get("duration")
    return None if took in (None, "nan") or not 0 <= took <= 1e8 else took


def run_stats(events: list[CountedEvent]) -> dict[str, tuple[Any, ...]]:
    """Return of each run: applications, start, end, duration, outcome, exit code, records, bytes, events, errors."""
    latest = reports(events)
    found = {}
    for run, own in groups((event for event in events if event.run is not None), lambda event: event.run).items():
        mine = [report for (name, _), report in latest.items() if name == run]
        first, last = min(event.at for event in own), max(event.at for event in own)
        took = [value for value in map(duration, mine) if value is not None]
        begun = [
            report.at - timedelta(seconds=duration(report) or 0) for report in mine if duration(report) is not None
        ]
        said = {report.payload.get("outcome") for report in mine} - {None}
        found[run] = (
            sorted({event.app for event in own} - {None}),
            min(begun) if begun and min(begun) < first - timedelta(seconds=1) else first,
            last,
            max(took) if took else (last - first).total_seconds(),
            "failed" if "failed" in said else max(said, default="unknown"),
            max((report.payload["exit_code"] for report in mine if "exit_code" in report.payload), default=None),
            total(report.payload.get("records") for report in mine),
            total(report.payload.get("bytes") for report in mine),
            len(own),
            sum(event.is_error for event in own),
        )
    return found


def counters(events: list[CountedEvent]) -> list[CountedMetric]:
    """Return the counters of records."""
    return [one for one in metrics(events) if one.name == "record_count" and one.type == "counter"]


def stream_stats(events: list[CountedEvent], heard: list[CountedEvent]) -> dict[str, tuple[Any, ...]]:
    """Return of each stream: applications, records, bytes, its longest timer with sum, p50 and p95, and the rate.

    The records of a run are those of its counters of the stream, of any application, in all that was ``heard``; of
    other runs, those of their reports.
    """
    counting = {(one.event.run, one.tags["stream"] or one.tags["endpoint"]) for one in counters(heard)}
    measured = metrics(events)
    counted: dict[Any, dict[Any, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    said: dict[Any, dict[Any, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    runs: dict[Any, dict[Any, list[tuple[str | None, dict[str, Any]]]]] = defaultdict(lambda: defaultdict(list))
    for one in measured:
        name = one.tags["stream"] or one.tags["endpoint"]
        if one.name == "record_count" and one.type == "counter" and name is not None:
            counted[name][one.event.app] += Fraction(one.value)
    for report in reports(events).values():
        for part in report.payload.get("streams", []):
            said[part["stream"][:KEY]][report.app].append(part)
            runs[part["stream"][:KEY]][report.app].append((report.run, part))
    tagged = groups((one for one in measured if one.tags["stream"] is not None), lambda one: one.tags["stream"])
    found = {}
    for name in {*tagged, *counted, *said}:

        def records_of(app: str | None, name: str = name) -> float | Fraction | None:
            parts = [part for run, part in runs[name][app] if (run, name) not in counting]
            numbers = [counted[name].get(app), *(part.get("records") for part in parts)]
            return total(numbers)

        apps = {*counted[name], *said[name]}
        timers = groups((one for one in tagged.get(name, []) if one.type == "timer"), lambda one: one.name)
        sums = {timer: math.fsum(one.value for one in values) for timer, values in timers.items()}
        timer = max(sums, key=lambda one: sums[one], default=None)
        values = [one.value for one in timers[timer]] if timer else []
        timed = total(records_of(app) for app in apps & {one.event.app for one in timers[timer]}) if timer else None
        sent = [part.get("bytes") for parts in said[name].values() for part in parts]
        records = total(map(records_of, apps))
        found[name] = (
            sorted({*apps, *(one.event.app for one in tagged.get(name, []))} - {None}),
            None if records is None else int(records),
            total(sent),
            sorted(one for one in sums if sums[one] == sums[timer]) if timer else [],
            sums[timer] if timer else None,
            [share(values, 0.5), share(values, 0.95)] if values else [None, None],
            int(timed) / sums[timer] if timer and timed is not None and sums[timer] else None,
        )
    return found


def records_by(events: list[CountedEvent], key: Callable[[datetime], Any]) -> dict[Any, float]:
    """Return records by a key of times: a run's counters, or its reports if it has none."""
    counts = counters(events)
    counting = {one.event.run for one in counts}
    found: dict[Any, float] = defaultdict(float)
    for one in counts:
        found[key(one.event.at)] += one.value
    for report in reports(events).values():
        if report.run not in counting and report.payload.get("records") is not None:
            found[key(report.at)] += report.payload["records"]
    return found


def failure_stats(events: list[CountedEvent]) -> dict[tuple[str, str | None], tuple[Any, ...]]:
    """Return of each failure (message, error type): events, first, last, applications, channels, level, example."""
    found = {}

    def key(event: CountedEvent) -> tuple[str, str | None]:
        exception = event.payload.get("exception", {})
        what = event.payload.get("message") or event.kind or ""
        why = exception.get("message")
        return (f"{what}: {why}" if what else why) if why else what, exception.get("type")

    for name, own in groups((event for event in events if event.is_error), key).items():
        first = min(own, key=lambda event: (event.at, event.id))
        found[name] = (
            len(own),
            first.at,
            max(event.at for event in own),
            sorted({event.app for event in own} - {None}),
            sorted({event.channel for event in own}),
            "CRITICAL" if any(event.level == "CRITICAL" for event in own) else "ERROR",
            first.id,
        )
    return found


def waits(events: list[CountedEvent]) -> dict[str, Counter[str]]:
    """Return of each stage the seconds that it waited, by the metric's name."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for one in metrics(events):
        if one.name in ("pipe_read_wait_seconds", "pipe_write_wait_seconds") and one.tags["stage"] is not None:
            found[one.tags["stage"]][one.name] += one.value  # type: ignore[assignment]
    return found
