"""Events into the handlers of the standard library's logging, such as those of pytest's caplog or Sentry."""

from __future__ import annotations

import logging
import os
from typing import Any

from balog.event import LEVELS, Event, decode_own
from balog.log.outputs.base import LogOutput
from balog.log.outputs.calls import ThreadBlock, current, stdlib_record
from balog.log.outputs.console import message_of

EVENT_ATTRIBUTE = "_balog_event"
"""The attribute of a record that holds the event which it was made of, encoded."""

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "payload", "context"}
_MAX_LOGGERS = 1000


class LoggingOutput(LogOutput):
    """Passes each event to the handlers of the logger that has the channel's name, and of its parents.

    The levels of balog decide, then those of the handlers; levels of the standard library's loggers do not count. An
    event that came from the standard library's logging has been there already, and is not passed again. Nor are events
    that a handler logs.
    """

    def __init__(self) -> None:
        self._handling = ThreadBlock()

    def write(self, level: str, event: bytes) -> None:
        """Pass one record to the handlers."""
        if stdlib_record.is_entered or self._handling.is_entered:
            return
        with self._handling:
            record = make_record(level, event)
            find_logger(record.name).handle(record)


def make_record(level: str, event: bytes) -> logging.LogRecord:
    """Return an event as a record, with the exception of the current call and its redacted traceback.

    The record has the level, the channel as its name, the message, the time and, as ``extra``, the event's ``payload``
    and ``context`` and the fields of a ``log`` payload. A field with the name of a standard attribute is in the payload
    only.
    """
    whole = decode_own(event)
    payload, error = whole.payload, current.exception
    is_log = payload.get("cls_type") == "log"
    message = payload.get("message") if is_log else None
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    text = message if isinstance(message, str) else message_of(payload)
    file, line, function = _origin(whole)
    record = logging.LogRecord(whole.header.channel, LEVELS[level], file, line, text, (), exc_info, function)
    created = whole.header.timestamp.timestamp()
    started = record.created - record.relativeCreated / 1000
    attributes: dict[str, Any] = {
        "levelname": level,
        "created": created,
        "msecs": float(int((created - int(created)) * 1000)),
        "relativeCreated": (created - started) * 1000,
        "payload": payload,
        "context": whole.header.context,
        EVENT_ATTRIBUTE: event,
    }
    trace = payload.get("exc_text")
    if isinstance(trace, str):  # formatters print this redacted text, and not the exception
        attributes["exc_text"] = trace
    fields = payload.get("fields")
    if is_log and isinstance(fields, dict):
        attributes |= {key: value for key, value in fields.items() if key not in _STANDARD and key[:1] != "_"}
    record.__dict__.update(attributes)
    return record


def made_here(record: logging.LogRecord) -> bool:
    """Return whether this process made a record of an event, which an ``EventHandler`` must not write again."""
    return EVENT_ATTRIBUTE in record.__dict__ and record.process == os.getpid()


def _origin(event: Event) -> tuple[str, int, str | None]:
    """Return file, line and function of the callsite; without one, the exception's innermost frame."""
    site, exception = event.header.context.get("callsite"), event.payload.get("exception")
    frames = exception.get("frames") if isinstance(exception, dict) else None
    for frame in (site, frames[-1] if isinstance(frames, list) and frames else None):
        if isinstance(frame, dict) and isinstance(frame.get("file"), str) and isinstance(frame.get("line"), int):
            function = frame.get("func")
            return frame["file"], frame["line"], function if isinstance(function, str) else None
    return "", 0, None


def find_logger(channel: str) -> logging.Logger:
    """Return the logger of a channel, or the nearest one above it if there are very many loggers already."""
    known = logging.Logger.manager.loggerDict
    if len(known) < _MAX_LOGGERS:
        return logging.getLogger(channel)
    name = channel
    while name:
        logger = known.get(name)
        if isinstance(logger, logging.Logger):
            return logger
        name = name.rpartition(".")[0]
    return logging.getLogger()
