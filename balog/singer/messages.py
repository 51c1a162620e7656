"""LOG messages of the broker proposal, and the events that they carry."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from balog.common.duplicate_keys import has_duplicate_key
from balog.common.errors import EventError
from balog.event import Event, Level, decode, encode, parse_level
from balog.event.log_payload import log_payload


class LogMessage(Struct):
    """A LOG: a level, and a value that is a whole event or free JSON, left undecoded."""

    level: Level
    value: Raw


class _Log(Struct):
    type: str
    level: Any = None
    value: Raw = Raw(b"")


_members = msgspec.json.Decoder(dict[str, Raw])
_log = msgspec.json.Decoder(_Log)
_encode = msgspec.json.Encoder().encode

# {"type": "LOG", "type": "DEBUG", …}: the form that the broker proposal's own examples have.
_DOUBLED_TYPE = re.compile(rb'\s*\{\s*"type"\s*:\s*"log"\s*,\s*"type"\s*:', re.IGNORECASE)


def parse_log(line: bytes) -> LogMessage | None:
    """Parse a LOG message; None for any other line.

    A missing level reads as INFO, and so does one that is no level. The key ``type`` given twice, as in
    ``{"type": "LOG", "type": "DEBUG"}``, reads as a LOG of level DEBUG. Where there is no ``value``, as in what
    sources of Mage write, it is all the other keys. The line must be immutable: the value keeps a view of it.
    """
    try:
        log = _log.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    level = log.level
    if log.type.upper() != "LOG":
        if parse_level(log.type) is None or not _DOUBLED_TYPE.match(line):
            return None
        if level is None:
            level = log.type
    try:
        value = log.value if memoryview(log.value).nbytes else _all_but_head(line)
    except UnicodeDecodeError:  # in a key, which was not decoded until now
        return None
    return LogMessage(level=(parse_level(level) if isinstance(level, str) else None) or "INFO", value=value)


def _all_but_head(line: bytes) -> Raw:
    members = {key: raw for key, raw in _members.decode(line).items() if key not in ("type", "level")}
    return Raw(_encode(members or None))


def write(message: LogMessage) -> bytes:
    """Write a LOG message as one line, with its newline."""
    return b'{"type":"LOG","level":"%b","value":%b}\n' % (message.level.encode(), bytes(message.value))


def write_log(event: Event) -> bytes:
    """Write an event as a LOG line with its newline, at level INFO if the event has no level."""
    return write(LogMessage(level=event.level or "INFO", value=Raw(encode(event))))


def to_event(log: LogMessage, *, channel: str = "singer", context: dict[str, Any] | None = None) -> tuple[Event, bytes]:
    """Make the event that a LOG message carries.

    A value that is a whole event is that event, its bytes as they came. Free JSON is wrapped: ``metric``, and what a
    source of Mage counted, becomes a ``metric`` payload on ``<channel>.metric``, ``message`` a ``log`` payload on
    ``<channel>.log``, anything else is kept whole as the payload. What looks like an event and is not one is kept whole
    too, under a ``log`` payload that says why.

    Returns:
        The event, and its encoding as one line without a newline.
    """
    raw = bytes(log.value)
    problem = None
    if b'"header"' in raw:
        try:
            event = decode(raw)
        except EventError as error:
            problem = str(error)
        else:
            return event, encode(event) if b"\n" in raw or b"\r" in raw else raw
    kind, payload = _wrap(raw, log.level, problem)
    event = Event.new(f"{channel}.{kind}", payload, level=log.level, context=dict(context or {}))
    return event, encode(event)


def _wrap(raw: bytes, level: Level, problem: str | None) -> tuple[str, Any]:
    """Return the suffix of the channel and the payload for free JSON."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = raw[:65536].decode("utf-8", "replace")
        return "log", log_payload(text, level, problem=f"cannot be read: {error}")
    if not isinstance(value, dict):
        return "log", log_payload(value if isinstance(value, str) else raw.decode(), level)
    if problem is not None and {"schema", "header", "payload"} <= value.keys():
        message = f"a LOG value that looks like an event and is not one: {problem}"
        return "log", log_payload(message, level, fields={"value": value})
    metric = metric_payload(value.get("metric")) or mage_metric(value)
    if metric is not None:
        return "metric", metric
    if isinstance(value.get("message"), str):
        rest = {key: item for key, item in value.items() if key != "message"}
        return "log", log_payload(value["message"], level, fields=rest)
    return "log", value if has_duplicate_key(raw) else Raw(raw)


def metric_payload(metric: Any) -> dict[str, Any] | None:
    """Make a ``metric`` payload from a Singer metric point: ``type``, ``metric``, ``value``, ``tags``; else None."""
    if not isinstance(metric, dict) or metric.get("type") not in ("counter", "timer", "gauge"):
        return None
    value = metric.get("value")
    if not isinstance(metric.get("metric"), str) or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return {"cls_type": "metric", "version": "1.0.0", "tags": {}, **metric}


def mage_metric(value: dict[str, Any]) -> dict[str, Any] | None:
    """Make a ``metric`` payload from the line that a source of Mage prints at a stream's end; None for other lines.

    ``{"message": "Synced stream completed.", "tags": {"stream": "users", "records": 891}, …}`` counts records.
    """
    tags = value.get("tags")
    if value.get("message") != "Synced stream completed." or not isinstance(tags, dict):
        return None
    others = {key: tag for key, tag in tags.items() if key != "records"}
    return metric_payload({"type": "counter", "metric": "record_count", "value": tags.get("records"), "tags": others})
