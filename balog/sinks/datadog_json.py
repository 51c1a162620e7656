"""Events as Datadog's HTTP API takes them: series, distributions, logs and events, each as one JSON object.

https://docs.datadoghq.com/api/latest/ says what they hold, and the limits.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from balog.errors import EventError
from balog.event import Event
from balog.payload import LogPayload, RunPayload, read
from balog.sinks.measures import Measure
from balog.sinks.summary import cut, stack_trace, summarize

__all__ = [
    "CountedSeconds",
    "Item",
    "clean_name",
    "distribution_items",
    "event_item",
    "host_of",
    "is_too_old",
    "log_item",
    "now",
    "series_items",
    "tag_list",
]

MAX_LOG = 1_000_000
"""Bytes of one log; Datadog cuts off the rest itself, in the middle of the JSON."""

_MAX_SHORTENED = 100_000  # characters, of at most 4 bytes
_MAX_STACK = 20_000
_MAX_NAME = 200
_MAX_TITLE = 100
_MAX_TEXT = 4000
_MAX_AGGREGATION_KEY = 100
_PAST, _FUTURE = timedelta(hours=1), timedelta(minutes=10)
_LOG_PAST, _LOG_FUTURE = timedelta(hours=18), timedelta(hours=2)
_COUNT, _GAUGE = 1, 3
_STATUSES = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "ERROR": "error", "CRITICAL": "critical"}
_ALERTS = {"WARNING": "warning", "ERROR": "error", "CRITICAL": "error"}
_TOLD = frozenset({"cls_type", "message", "exception", "exc_text"})
_TAKEN_OUT = frozenset({"fqdn", "application", "trace_id", "span_id"})

_encode = msgspec.json.Encoder().encode


class Item(NamedTuple):
    """A part of a request: its JSON, and the batch's indexes of the events that it tells of.

    ``seconds`` are the sums in it, for ``CountedSeconds.keep`` once it was taken.
    """

    body: bytes
    indexes: list[int]
    seconds: Mapping[Any, float] = {}


class _Series(NamedTuple):
    metric: str
    tags: tuple[str, ...]
    host: str


class CountedSeconds:
    """Sums of each series' latest seconds, for one writer.

    Datadog keeps the later of two points of one series and second. A second point therefore has the sum, and a request
    that comes again, after an answer was lost, changes nothing. Points of another sink, broker or machine would replace
    each other too, so the series of each writer have a tag of their own.

    Attributes:
        writer: the tag. It changes when a point comes for a second whose sums are forgotten.
    """

    _MOST = 20_000

    def __init__(self) -> None:
        self._sums: OrderedDict[Any, float] = OrderedDict()
        self._begin()

    def _begin(self) -> None:
        self.writer = f"balog_writer:{secrets.token_hex(6)}"
        self._sums.clear()
        self._forgotten = -1

    def check(self, second: int, key: Any) -> None:
        """Become another writer if the sum of a series and second may have been forgotten."""
        if second <= self._forgotten and key not in self._sums:
            self._begin()

    def plus(self, key: Any, value: float) -> float:
        """Give the sum with a value that is about to be sent."""
        return _finite(self._sums.get(key, 0.0) + value)

    def keep(self, sums: Mapping[Any, float]) -> None:
        """Remember sums that were taken."""
        for key, total in sums.items():
            self._sums[key] = total
            self._sums.move_to_end(key)
        while len(self._sums) > self._MOST:
            (_, second), _ = self._sums.popitem(last=False)
            self._forgotten = max(self._forgotten, second)


def is_too_old(timestamp: datetime, now: datetime) -> str | None:
    """Say why Datadog would drop a point of this time in silence; None when it would not."""
    if timestamp < now - _PAST:
        return f"{timestamp.isoformat()} is more than an hour ago, and Datadog drops such points"
    if timestamp > now + _FUTURE:
        return f"{timestamp.isoformat()} is more than ten minutes ahead, and Datadog drops such points"
    return None


def series_items(
    measures: Iterable[tuple[int, Measure, str]], service: Mapping[int, str], counted: CountedSeconds
) -> list[Item]:
    """Give ``/api/v2/series`` of counters and gauges: a point for each second, the sum or the last level of it.

    Counters have the tag of their writer too, see ``CountedSeconds``.

    Args:
        measures: each with its event's index and host.
        service: by index, what becomes the tag ``service``.
    """
    groups: dict[tuple[_Series, str], dict[int, list[tuple[int, float]]]] = {}
    for index, measure, host in measures:
        series = _Series(clean_name(measure.name), tuple(tag_list(measure.tags, service.get(index, ""))), host)
        seconds = groups.setdefault((series, measure.kind), {})
        second = int(measure.timestamp.timestamp())
        seconds.setdefault(second, []).append((index, measure.value))
        if measure.kind == "counter":
            counted.check(second, (series, second))
    items = []
    for (series, kind), seconds in groups.items():
        sums: dict[Any, float] = {}
        points = []
        for second, values in seconds.items():
            value = values[-1][1]
            if kind == "counter":
                key = (series, second)
                sums[key] = value = counted.plus(key, _finite(sum(found for _, found in values)))
            points.append({"timestamp": second, "value": value})
        body: dict[str, Any] = {"metric": series.metric, "type": _GAUGE, "points": points, "tags": series.tags}
        if kind == "counter":
            body.update(type=_COUNT, interval=1, tags=(*series.tags, counted.writer))
        if series.host:
            body["resources"] = [{"type": "host", "name": series.host}]
        items.append(Item(_encode(body), sorted({i for values in seconds.values() for i, _ in values}), sums))
    return items


def distribution_items(measures: Iterable[tuple[int, Measure, str]], service: Mapping[int, str]) -> list[Item]:
    """Give ``/api/v1/distribution_points`` of timers, in seconds."""
    groups: dict[_Series, dict[int, list[tuple[int, float]]]] = {}
    for index, measure, host in measures:
        series = _Series(clean_name(measure.name), tuple(tag_list(measure.tags, service.get(index, ""))), host)
        seconds = groups.setdefault(series, {})
        seconds.setdefault(int(measure.timestamp.timestamp()), []).append((index, measure.value))
    items = []
    for series, seconds in groups.items():
        body: dict[str, Any] = {
            "metric": series.metric,
            "type": "distribution",
            "points": [[second, [value for _, value in values]] for second, values in seconds.items()],
            "tags": series.tags,
        }
        if series.host:
            body["host"] = series.host
        items.append(Item(_encode(body), sorted({i for values in seconds.values() for i, _ in values})))
    return items


def log_item(index: int, event: Event, source: str, service: str, tags: Sequence[str], now: datetime) -> Item:
    """Give ``/api/v2/logs`` of an event; one that is too large loses its context, and its payload is text, cut off."""
    header = event.header
    body: dict[str, Any] = {
        "message": summarize(event),
        "ddsource": source,
        "status": _STATUSES[event.level or "INFO"],
        "balog": {"id": header.id, "channel": header.channel, "cls_type": event.cls_type},
    }
    if tags:
        body["ddtags"] = ",".join(tags)
    if host := host_of(event):
        body["hostname"] = host
    if service:
        body["service"] = service
    timely = now - _LOG_PAST < header.timestamp < now + _LOG_FUTURE
    # What is older is dropped, unless it is taken for a log of now.
    body["timestamp" if timely else "event_timestamp"] = header.timestamp.isoformat(timespec="milliseconds")
    ids = {key: header.context[key] for key in ("trace_id", "span_id") if isinstance(header.context.get(key), str)}
    if ids:
        body["dd"] = ids
    if error := _error(event):
        body["error"] = error
    whole = {**body, "context": {key: value for key, value in header.context.items() if key not in _TAKEN_OUT}}
    try:
        whole["payload"] = event.payload
        if log := _log(event):
            whole["message"] = log.message if log.message.strip() else body["message"]
            whole["payload"] = {key: value for key, value in event.payload.items() if key not in _TOLD}
        encoded = _encode(whole)
        if len(encoded) <= MAX_LOG:
            return Item(encoded, [index])
    except (EventError, RecursionError):
        pass  # nested too deep to be data, but its text can be read
    raw = bytes(event.raw_payload).decode("utf-8", "replace")
    body["payload_shortened"] = cut(raw, _MAX_SHORTENED)
    for key, value in ids.items():
        ids[key] = cut(value, _MAX_NAME)
    return Item(_encode(body), [index])


def event_item(index: int, event: Event, service: str, tags: Sequence[str], now: datetime) -> Item | None:
    """Give ``/api/v1/events`` of a run or an error; None for any other event."""
    run = _run(event)
    if run is None and event.level not in ("ERROR", "CRITICAL"):
        return None
    stack = (_error(event) or {}).get("stack", "")
    alert = "success" if run and run.outcome == "succeeded" else _ALERTS.get(event.level or "", "info")
    body: dict[str, Any] = {
        "title": summarize(event, _MAX_TITLE),
        "text": cut(f"{summarize(event)}\n{event.header.channel} {event.header.id}\n{stack}".strip(), _MAX_TEXT),
        "alert_type": "error" if run and run.outcome == "failed" else alert,
        "aggregation_key": cut(service or event.header.channel, _MAX_AGGREGATION_KEY),
        "tags": tags,
    }
    if host := host_of(event):
        body["host"] = host
    if now - _LOG_PAST < event.header.timestamp < now + _FUTURE:
        body["date_happened"] = int(event.header.timestamp.timestamp())
    return Item(_encode(body), [index])


def host_of(event: Event) -> str:
    """Give the event's host, at most 255 characters; empty when it says none."""
    host = event.header.context.get("fqdn")
    return host[:255] if isinstance(host, str) else ""


def _run(event: Event) -> RunPayload | None:
    try:
        run = read(event)
    except EventError:
        return None
    return run if isinstance(run, RunPayload) else None


def _log(event: Event) -> LogPayload | None:
    try:
        log = read(event)
    except EventError:
        return None
    return log if isinstance(log, LogPayload) else None


def _error(event: Event) -> dict[str, str] | None:
    log = _log(event)
    if log is None or not (log.exception or log.exc_text):
        return None
    error = {"stack": cut(stack_trace(log), _MAX_STACK)}
    if log.exception:
        error["kind"] = cut(log.exception.type, _MAX_NAME)
        error["message"] = cut(log.exception.message, _MAX_STACK)
    return error


_LARGEST = 1.7976931348623157e308  # JSON has no infinity


def _finite(value: float) -> float:
    return max(-_LARGEST, min(_LARGEST, value))


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]+")
_NOT_IN_TAGS = re.compile(r"[^\w./:-]+")


@lru_cache(maxsize=4096)
def clean_name(name: str) -> str:
    """Give a metric's name as Datadog keeps it: begun by a letter, of ASCII letters, digits, ``_`` and ``.``"""
    name = _NOT_IN_NAMES.sub("_", name)
    return (name if name[:1].isalpha() else f"m{name}")[:_MAX_NAME]


def tag_list(tags: Mapping[str, str], service: str = "") -> list[str]:
    """Give tags as Datadog keeps them, sorted: ``key:value`` begun by a letter, at most 200 characters."""
    named = {"service": service, **tags} if service else tags
    return sorted(_clean_tag(key, value) for key, value in named.items())


@lru_cache(maxsize=4096)
def _clean_tag(key: str, value: str) -> str:
    key = _NOT_IN_TAGS.sub("_", key).replace(":", "_")
    key = key if key[:1].isalpha() else f"t{key}"
    return f"{key}:{_NOT_IN_TAGS.sub('_', value)}"[:_MAX_NAME]


def now() -> datetime:
    """Give the time that limits are counted from."""
    return datetime.now(timezone.utc)
