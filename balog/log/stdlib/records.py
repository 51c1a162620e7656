"""Parse records of the standard library's logging into the parts of an event."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec

from balog.common.errors import ConfigError, EventError
from balog.event import Event, Level, decode
from balog.event.log_payload import log_payload
from balog.log.logger import level_of
from balog.log.metrics.points import capped, json_tags
from balog.log.outputs.stdlib import EVENT_ATTRIBUTE
from balog.log.recorder import Recorder
from balog.log.rendering import callsites
from balog.log.rendering.call_options import NO_PAYLOAD
from balog.log.values import exceptions
from balog.log.values.encoding import message_text, payload_of
from balog.log.values.json_values import safe_str
from balog.singer.messages import metric_payload, parse_log, to_event

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_METRIC_NAMES = frozenset({"metric", "metric_info"})
_EVENT_KEYS = frozenset({"schema", "header", "payload"})
_LAST_SECOND = 253_402_300_799  # of the year 9999


class EventParts(NamedTuple):
    """The parts of an event.

    Attributes:
        context: the keys that differ from the current context.
        nanoseconds: since the epoch.
    """

    level: Level
    channel: str
    payload: Any
    context: dict[str, Any]
    nanoseconds: int


def checked_prefix(prefix: str | None, where: str) -> str:
    """Return what is put before the loggers' names; "" for nothing.

    Raises:
        ConfigError: it is not a text.
    """
    if prefix is not None and not isinstance(prefix, str):
        raise ConfigError(f"prefix is {type(prefix).__name__}; expected a text", where)
    return prefix or ""


def read_record(record: logging.LogRecord, recorder: Recorder, prefix: str, root: str = "") -> Event | EventParts:
    """Return the event that a record holds, or the parts of the event to make of it.

    The payload is ``extra={"payload": {…}}`` if set, a ``metric`` for the metric lines of singer-python and the Meltano
    SDK and for ``extra={"metric": {…}}``, otherwise a ``log`` with the record's other attributes as ``fields``.

    Args:
        prefix: put before the logger's name, unless the name is below it already.
        root: the channel of the root logger's records; "" for the prefix, else the application's name.
    """
    made_of = record.__dict__.get(EVENT_ATTRIBUTE)
    if isinstance(made_of, bytes):
        with suppress(EventError):
            return decode(made_of)
    args = record.args if isinstance(record.args, tuple) else () if record.args is None else (record.args,)
    fields: dict[str, Any] = {}
    if not record.__dict__.keys() <= _STANDARD:
        fields = {key: value for key, value in record.__dict__.items() if key not in _STANDARD and key[:1] != "_"}
    channel = record.name
    if not channel or channel == "root":
        channel = root or prefix or str(recorder.process_context.get()[0]["application"])
    elif prefix and channel != prefix and not channel.startswith(f"{prefix}."):
        channel = f"{prefix}.{channel}"
    level = level_of(record.levelno)
    if isinstance(record.msg, (Event, dict)) and not args:
        event, message = _read_data(record.msg, fields)
    else:
        message = message_text(record.msg, args)
        event = _read_text(message, channel) if message[:1] == "{" else None
    if event is not None:
        return event
    if record.stack_info:
        fields["stack_info"] = record.stack_info
    payload = _payload(record, recorder, message, args, fields)
    context = _origin(record)
    if recorder.callsites is not None:
        context[callsites.KEY] = {"file": record.pathname, "line": record.lineno, "func": record.funcName}
    return EventParts(level, channel, payload, context, _nanoseconds(record.created))


def fallback_payload(record: logging.LogRecord, level: Level, error: BaseException) -> dict[str, Any]:
    """Return the payload of a record that could not be read."""
    return log_payload(safe_str(record.msg), level, problem=f"its record raised {type(error).__name__}")


def _read_data(data: Event | dict[Any, Any], fields: dict[str, Any]) -> tuple[Event | None, str]:
    """Parse a message that is not a string; its other values go to the fields."""
    if isinstance(data, Event):
        return data, ""
    if data.keys() >= _EVENT_KEYS:
        with suppress(EventError, TypeError, ValueError, RecursionError):
            return decode(msgspec.json.encode(data)), ""
    name = next((key for key in ("event", "message") if isinstance(data.get(key), str)), None)
    for key, value in data.items():
        if key != name:
            fields.setdefault(str(key), value)
    return None, "" if name is None else data[name]


def _read_text(message: str, channel: str) -> Event | None:
    """Return the event in a line of JSON: by itself, or in a Singer LOG message."""
    if '"header"' in message and '"payload"' in message:
        with suppress(EventError):
            return decode(message)
    if '"type"' in message:
        with suppress(EventError, UnicodeEncodeError):
            log = parse_log(message.encode())
            return None if log is None else to_event(log, channel=channel)[0]
    return None


def _payload(
    record: logging.LogRecord, recorder: Recorder, message: str, args: tuple[Any, ...], fields: dict[str, Any]
) -> Any:
    make = partial(payload_of, strict=recorder.strict)
    extra = record.__dict__
    metric = _metric_of(record.msg, args)
    if metric is not None:
        return make("", metric, record.exc_info, fields)
    for name in extra.keys() & _METRIC_NAMES:
        metric = _metric(extra[name])
        if metric is not None:
            del fields[name]
            fields.setdefault("message", message)
            return make("", metric, record.exc_info, fields)
    if "payload" in extra and not isinstance(given := extra["payload"], NO_PAYLOAD):
        del fields["payload"]
        fields.setdefault("message", message)
        return make("", given, record.exc_info, fields)
    error = exceptions.find(record.exc_info)
    if error is not None:
        exception = exceptions.describe(error)
    else:
        exception = {"exc_text": record.exc_text}
    return log_payload(message, record.levelname, logger=record.name, fields=fields, **exception)


def _metric_of(message: Any, args: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return the metric in ``METRIC: %s``, in any form of its point."""
    if not isinstance(message, str) or not message.startswith("METRIC"):
        return None
    return _metric(args[0] if args else message[6:].lstrip(": "))


def _metric(point: Any) -> dict[str, Any] | None:
    """Return the payload of a point: JSON text, singer-python's ``Point``, the SDK's with ``to_dict``, a dict."""
    if isinstance(point, str):
        try:
            point = msgspec.json.decode(point)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return None
    elif hasattr(point, "to_dict"):
        point = point.to_dict()
    elif hasattr(point, "metric_type"):
        point = {"type": point.metric_type, "metric": point.metric, "value": point.value, "tags": point.tags}
    payload = metric_payload(dict(point)) if isinstance(point, Mapping) else None
    if payload is None or not payload["metric"] or not math.isfinite(payload["value"]):
        return None
    tags = payload["tags"] if isinstance(payload["tags"], dict) else {}
    payload["tags"] = capped(payload["metric"], json_tags(tags))
    return payload


def _origin(record: logging.LogRecord) -> dict[str, Any]:
    """Return the origin of a record that another thread or process handles, such as behind a ``QueueHandler``."""
    origin: dict[str, Any] = {}
    if record.threadName and record.threadName != threading.current_thread().name:
        origin["thread"] = record.threadName
    if record.process and record.process != os.getpid():
        origin["process"] = record.process
    return origin


def _nanoseconds(created: Any) -> int:
    if isinstance(created, (int, float)) and 0 <= created <= _LAST_SECOND:
        return round(created * 1e6) * 1000
    return time.time_ns()
