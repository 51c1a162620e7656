"""The handler of the standard library's logging that writes events."""

from __future__ import annotations

import logging
import threading
from typing import Any

from balog.event import LEVELS, Event
from balog.log.configuration import state
from balog.log.guard import guarded
from balog.log.logger import emit, level_of, write_raw
from balog.log.outputs.calls import stdlib_record
from balog.log.outputs.stdlib import EVENT_ATTRIBUTE, made_here
from balog.log.recorder import Recorder
from balog.log.stdlib.records import checked_prefix, fallback_payload, read_record
from balog.log.values.json_values import safe_str
from balog.log.values.validation import PayloadError

_OWN_THREADS = "balog "


class EventHandler(logging.Handler):
    """Writes each record as an event to the outputs of ``balog.configure``. Raises only if configured ``strict``.

    A record that already is an event (an ``Event``, its dict or JSON line, a Singer LOG message) is passed on as it is.
    Records that are logged while an event is written, or by the threads that feed sinks, would loop without end: they
    are dropped and counted in ``looped``. The handler uses no formatter.

    Args:
        level: the lowest level, as for any handler.
        prefix: put before the loggers' names.

    Raises:
        ConfigError: ``prefix`` is not a text.
    """

    def __init__(self, level: int | str = 0, *, prefix: str | None = None) -> None:
        super().__init__(level)
        self._prefix = checked_prefix(prefix, "EventHandler")
        self.looped = 0
        self._counting = threading.Lock()

    @guarded(lambda self, record: False)
    def handle(self, record: logging.LogRecord) -> Any:
        """Filter and write a record, without the handler's lock, which is not needed here."""
        passed: Any = self.filter(record)
        if isinstance(passed, logging.LogRecord):  # since Python 3.12 a filter may return another one
            record = passed
        if passed:
            self.emit(record)
        return passed

    @guarded()
    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if stdlib_record.is_entered or safe_str(record.threadName).startswith(_OWN_THREADS):
            with self._counting:
                self.looped += 1
            return
        if EVENT_ATTRIBUTE in record.__dict__ and made_here(record):
            return
        recorder = state.current()
        if recorder.threshold <= LEVELS[level_of(record.levelno)]:
            with stdlib_record:
                self._write(record, recorder)

    def _write(self, record: logging.LogRecord, recorder: Recorder) -> None:
        try:
            parts = read_record(record, recorder, self._prefix)
            if isinstance(parts, Event):
                write_raw(recorder, parts.level or level_of(record.levelno), parts, recorder.write)
                return
        except (PayloadError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # such as the panic of an extension in Rust
            if recorder.strict:
                raise
            recorder.changed()
            level = level_of(record.levelno)
            emit(level, safe_str(record.name), fallback_payload(record, level, error))
            return
        emit(parts.level, parts.channel, parts.payload, context=parts.context, nanoseconds=parts.nanoseconds)
