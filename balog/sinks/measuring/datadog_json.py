"""Events in the form of Datadog's HTTP API: series, distributions and logs, each as one JSON object.

Forms and limits: https://docs.datadoghq.com/api/latest/
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from balog.common.errors import EventError
from balog.common.text import cut
from balog.event import Event
from balog.event.payload import LogPayload, read
from balog.sinks.measuring.measures import Kind, Measure
from balog.sinks.summary import stack_trace, summarize

MAX_LOG = 1_000_000
"""Bytes of one log at most; Datadog would truncate a longer one in the middle of its JSON."""

_MAX_SHORTENED = 100_000  # characters, of at most 4 bytes
_MAX_STACK = 20_000
_MAX_NAME = 200
_PAST, _FUTURE = timedelta(hours=1), timedelta(minutes=10)
_LOG_PAST, _LOG_FUTURE = timedelta(hours=18), timedelta(hours=2)
_COUNT, _GAUGE = 1, 3
_STATUSES = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "ERROR": "error", "CRITICAL": "critical"}
_IN_OTHER_FIELDS = frozenset({"cls_type", "message", "exception", "exc_text"})
_CONTEXT_IN_OTHER_FIELDS = frozenset({"fqdn", "application", "trace_id", "span_id"})

_encode = msgspec.json.Encoder().encode


class DatadogItem(NamedTuple):
    """A part of a request.

    Attributes:
        body: its JSON.
        indexes: the indexes in the batch of its events.
        seconds: the sums in it, for ``CountedSeconds.keep`` after it was taken.
    """

    body: bytes
    indexes: list[int]
    seconds: Mapping[Any, float] = {}


class _Series(NamedTuple):
    metric: str
    tags: tuple[str, ...]
    host: str


class CountedSeconds:
    """The sums of the latest seconds of each series, for one writer.

    Of two points of one series and second, Datadog keeps the later one. A second point therefore has the sum, and a
    request that is repeated after a lost answer changes nothing. Points of other sinks, brokers or machines would
    replace each other, too, so the series of each writer have a tag of their own.

    Attributes:
        writer: the tag. It changes when too many sums are remembered, which are then forgotten.
    """

    _MOST = 20_000

    def __init__(self) -> None:
        self.writer = ""
        self._sums: dict[Any, float] = {}
        self.begin_request()

    def begin_request(self) -> None:
        """Change the writer if too many sums are remembered."""
        if not self.writer or len(self._sums) >= self._MOST:
            self.writer = f"balog_writer:{secrets.token_hex(6)}"
            self._sums.clear()

    def add_to(self, key: Any, value: float) -> float:
        """Return the sum with a value that is about to be sent, without remembering it."""
        return _finite(self._sums.get(key, 0.0) + value)

    def keep(self, sums: Mapping[Any, float]) -> None:
        """Remember sums that Datadog took."""
        self._sums.update(sums)


def time_error(timestamp: datetime, now: datetime) -> str | None:
    """Return why Datadog would silently drop a point of this time; None if it would not."""
    if timestamp < now - _PAST:
        return f"{timestamp.isoformat()} is more than an hour ago, and Datadog drops such points"
    if timestamp > now + _FUTURE:
        return f"{timestamp.isoformat()} is more than ten minutes ahead, and Datadog drops such points"
    return None


def series_items(
    measures: Iterable[tuple[int, Measure, str]], service: Mapping[int, str], counted: CountedSeconds
) -> list[DatadogItem]:
    """Return items for ``/api/v2/series``: a point per second, the sum of a counter or the last level of a gauge.

    Counters also have the tag of their writer; see ``CountedSeconds``.

    Args:
        measures: counters and gauges, each with its event's index and host.
        service: the values of the tag ``service``, by index.
    """
    counted.begin_request()
    items = []
    for (series, kind), seconds in _by_second(measures, service).items():
        sums: dict[Any, float] = {}
        points = []
        for second, values in seconds.items():
            value = values[-1][1]
            if kind == "counter":
                key = (series, second)
                sums[key] = value = counted.add_to(key, _finite(sum(amount for _, amount in values)))
            points.append({"timestamp": second, "value": value})
        body: dict[str, Any] = {"metric": series.metric, "type": _GAUGE, "points": points, "tags": series.tags}
        if kind == "counter":
            body.update(type=_COUNT, interval=1, tags=(*series.tags, counted.writer))
        if series.host:
            body["resources"] = [{"type": "host", "name": series.host}]
        items.append(DatadogItem(_encode(body), sorted({i for values in seconds.values() for i, _ in values}), sums))
    return items


def distribution_items(measures: Iterable[tuple[int, Measure, str]], service: Mapping[int, str]) -> list[DatadogItem]:
    """Return items for ``/api/v1/distribution_points``: timers, in seconds."""
    items = []
    for (series, _), seconds in _by_second(measures, service).items():
        body: dict[str, Any] = {
            "metric": series.metric,
            "type": "distribution",
            "points": [[second, [value for _, value in values]] for second, values in seconds.items()],
            "tags": series.tags,
        }
        if series.host:
            body["host"] = series.host
        items.append(DatadogItem(_encode(body), sorted({i for values in seconds.values() for i, _ in values})))
    return items


def _by_second(
    measures: Iterable[tuple[int, Measure, str]], service: Mapping[int, str]
) -> dict[tuple[_Series, Kind], dict[int, list[tuple[int, float]]]]:
    """Return the values of each series by second, each with its event's index."""
    groups: dict[tuple[_Series, Kind], dict[int, list[tuple[int, float]]]] = {}
    for index, measure, host in measures:
        series = _Series(clean_name(measure.name), tuple(tag_list(measure.tags, service.get(index, ""))), host)
        seconds = groups.setdefault((series, measure.kind), {})
        seconds.setdefault(int(measure.timestamp.timestamp()), []).append((index, measure.value))
    return groups


def log_item(index: int, event: Event, service: str, tags: Sequence[str], now: datetime) -> DatadogItem:
    """Return an item for ``/api/v2/logs``. A large event loses its context, and its payload is truncated text."""
    header = event.header
    body: dict[str, Any] = {
        "message": summarize(event),
        "ddsource": "balog",
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
    # Datadog drops older logs, unless their timestamp is now.
    body["timestamp" if timely else "event_timestamp"] = header.timestamp.isoformat(timespec="milliseconds")
    ids = {key: header.context[key] for key in ("trace_id", "span_id") if isinstance(header.context.get(key), str)}
    if ids:
        body["dd"] = ids
    if error := _error(event):
        body["error"] = error
    whole = {
        **body,
        "context": {key: value for key, value in header.context.items() if key not in _CONTEXT_IN_OTHER_FIELDS},
    }
    try:
        whole["payload"] = event.payload
        if log := _log(event):
            whole["message"] = log.message if log.message.strip() else body["message"]
            whole["payload"] = {key: value for key, value in event.payload.items() if key not in _IN_OTHER_FIELDS}
        encoded = _encode(whole)
        if len(encoded) <= MAX_LOG:
            return DatadogItem(encoded, [index])
    except (EventError, RecursionError):
        pass  # too deeply nested to decode; its text is sent instead
    raw = bytes(event.raw_payload).decode("utf-8", "replace")
    body["payload_shortened"] = cut(raw, _MAX_SHORTENED)
    for key, value in ids.items():
        ids[key] = cut(value, _MAX_NAME)
    return DatadogItem(_encode(body), [index])


def host_of(event: Event) -> str:
    """Return the event's host, truncated to 255 characters; empty without one."""
    host = event.header.context.get("fqdn")
    return host[:255] if isinstance(host, str) else ""


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
    """Return a valid Datadog metric name: ASCII letters, digits, ``_`` and ``.``, beginning with a letter."""
    name = _NOT_IN_NAMES.sub("_", name)
    return (name if name[:1].isalpha() else f"m{name}")[:_MAX_NAME]


def tag_list(tags: Mapping[str, str], service: str = "") -> list[str]:
    """Return valid Datadog tags, sorted: ``key:value``, beginning with a letter, at most 200 characters."""
    named = {"service": service, **tags} if service else tags
    return sorted(_clean_tag(key, value) for key, value in named.items())


@lru_cache(maxsize=4096)
def _clean_tag(key: str, value: str) -> str:
    key = _NOT_IN_TAGS.sub("_", key).replace(":", "_")
    key = key if key[:1].isalpha() else f"t{key}"
    return f"{key}:{_NOT_IN_TAGS.sub('_', value)}"[:_MAX_NAME]
