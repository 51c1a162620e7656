"""Events from the standard library's logging: each log record becomes an event.

``install()`` sets up everything. Use ``EventHandler`` and ``EventFormatter`` in a ``dictConfig``, a ``logging.conf`` or
the config file of the Meltano SDK.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from contextlib import ExitStack
from typing import Any

from balog.errors import ConfigError
from balog.event import LEVELS, Event, Level
from balog.handlers.capture import capture_loop, capture_uncaught, capture_warnings
from balog.handlers.records import Naming, read_record
from balog.logger import emit, level_of
from balog.outputs import calls
from balog.outputs.stdio import singer_line
from balog.outputs.stdlib import EVENT_ATTRIBUTE, made_here
from balog.payload import log_payload
from balog.recording import configuration
from balog.recording.json_values import safe_str
from balog.recording.recorder import Recorder
from balog.recording.validation import PayloadError

__all__ = [
    "EventFormatter",
    "EventHandler",
    "capture_loop",
    "capture_uncaught",
    "capture_warnings",
    "install",
    "keep_through_singer_python",
]

_thread = threading.local()
_OWN_THREADS = "balog "


class EventHandler(logging.Handler):
    """Writes each record as an event to the outputs of ``balog.configure``. Raises only if configured ``strict``.

    A record that already is an event (an ``Event``, its dict or JSON line, a Singer LOG message) is passed on as it is.
    Records that are logged while an event is written, or by the threads that feed sinks, would loop without end: they
    are dropped and counted in ``looped``. The handler uses no formatter.

    Args:
        level: the lowest level, as for any handler.
        channel: the channel of all records, instead of their loggers' names.
        prefix: put before the loggers' names.
    """

    def __init__(self, level: int | str = 0, *, channel: str | None = None, prefix: str | None = None) -> None:
        super().__init__(level)
        self.naming = Naming(channel, prefix)
        self.looped = 0
        self._counting = threading.Lock()

    def handle(self, record: logging.LogRecord) -> Any:
        """Filter and write a record, without the handler's lock, which is not needed here."""
        passed: Any = self.filter(record)
        if isinstance(passed, logging.LogRecord):  # since Python 3.12 a filter may return another one
            record = passed
        if passed:
            self.emit(record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if getattr(_thread, "is_writing", False) or (record.threadName or "").startswith(_OWN_THREADS):
            with self._counting:
                self.looped += 1
            return
        if EVENT_ATTRIBUTE in record.__dict__ and made_here(record):
            return
        recorder = configuration.current()
        _thread.is_writing = calls.current.is_from_stdlib = True
        try:
            if recorder.threshold <= LEVELS[level_of(record.levelno)]:
                self._write(record, recorder)
        except PayloadError:
            raise
        except Exception:
            if recorder.strict and logging.raiseExceptions:
                raise
        finally:
            _thread.is_writing = calls.current.is_from_stdlib = False

    def _write(self, record: logging.LogRecord, recorder: Recorder) -> None:
        try:
            found = read_record(record, recorder, self.naming)
            if isinstance(found, Event):
                level, channel = found.level or level_of(record.levelno), found.header.channel
                if recorder.threshold_of(channel) <= LEVELS[level] and recorder.share_of(channel, level):
                    recorder.write(level, recorder.render_foreign(found), channel)
                return
        except Exception as error:
            if recorder.strict:
                recorder.failed()
                raise
            recorder.changed()
            level = level_of(record.levelno)
            emit(level, safe_str(record.name), _fallback_payload(record, level, error))
            return
        emit(found.level, found.channel, found.payload, context=found.context, nanoseconds=found.nanoseconds)


class EventFormatter(logging.Formatter):
    """Formats a record as the event that ``EventHandler`` would write, for any other handler.

    Args:
        fmt: ``json`` for the event in one line, the default, or ``singer`` for a LOG message. Configs of the standard
            library set it as ``format``.
        channel: the channel of all records, instead of their loggers' names.
        prefix: put before the loggers' names.
        form: the same as ``fmt``.

    Raises:
        ConfigError: another format.
    """

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: Any = "%",
        validate: bool = True,
        *,
        channel: str | None = None,
        prefix: str | None = None,
        form: str | None = None,
        defaults: Any = None,
    ) -> None:
        super().__init__()
        self.form = form or fmt or "json"
        if self.form not in ("json", "singer"):
            raise ConfigError(f"no format {self.form[:80]!r}; there are json, singer", "EventFormatter")
        self.naming = Naming(channel, prefix)

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, without a newline."""
        recorder = configuration.current()
        try:
            level, event = self._render(record, recorder)
        except Exception as error:
            if recorder.strict:
                recorder.failed()
                raise
            recorder.changed()
            level = level_of(record.levelno)
            event = recorder.render(level, safe_str(record.name), _fallback_payload(record, level, error), {}, b"")
        line = singer_line(level, event)[:-1] if self.form == "singer" else event
        return line.decode()

    def _render(self, record: logging.LogRecord, recorder: Recorder) -> tuple[Level, bytes]:
        found = read_record(record, recorder, self.naming)
        if isinstance(found, Event):
            return found.level or level_of(record.levelno), recorder.render_foreign(found)
        context = recorder.encode_context(found.context)
        return found.level, recorder.render(
            found.level, found.channel, found.payload, found.context, context, found.nanoseconds
        )


def _fallback_payload(record: logging.LogRecord, level: Level, error: Exception) -> dict[str, Any]:
    return log_payload(safe_str(record.msg), level, problem=f"its record raised {type(error).__name__}")


def install(
    root_level: int | str | None = "INFO",
    *,
    warnings: bool = True,
    uncaught: bool = True,
    replace: bool = True,
    channel: str | None = None,
    prefix: str | None = None,
) -> ExitStack:
    """Turn every log record of this process into an event.

    A second call adds no second handler. If it has a ``channel`` or a ``prefix``, these replace the earlier ones until
    it is undone.

    Args:
        root_level: the root logger's new level; None leaves it.
        warnings: include ``warnings.warn``.
        uncaught: include uncaught exceptions, in any thread.
        replace: remove the root logger's other handlers, which would write every line a second time.
        channel: the channel of all records, instead of their loggers' names.
        prefix: put before the loggers' names.

    Returns:
        A stack that undoes it, with ``close()`` or at the end of a ``with`` block.
    """
    root = logging.getLogger()
    stack = ExitStack()
    before = list(root.handlers)
    installed = [handler for handler in before if isinstance(handler, EventHandler)]
    if not installed:
        handler = EventHandler(channel=channel, prefix=prefix)
        root.addHandler(handler)
        stack.callback(root.removeHandler, handler)
    elif channel is not None or prefix is not None:
        for handler in installed:
            stack.callback(_rename, handler, handler.naming, _rename(handler, Naming(channel, prefix)))
    if replace:
        for other in before:
            if not isinstance(other, EventHandler):
                root.removeHandler(other)
                stack.callback(root.addHandler, other)
    if root_level is not None:
        stack.callback(root.setLevel, root.level)
        root.setLevel(root_level)
    stack.enter_context(keep_through_singer_python())
    if warnings:
        stack.enter_context(capture_warnings())
    if uncaught:
        stack.enter_context(capture_uncaught())
    return stack


def _rename(handler: EventHandler, naming: Naming, current: Naming | None = None) -> Naming:
    """Set a handler's naming and return it, unless the handler no longer has the ``current`` one."""
    if current is None or handler.naming is current:
        handler.naming = naming
    return naming


def keep_through_singer_python() -> ExitStack:
    """Keep the root logger's handlers when a tap calls ``singer.get_logger()``.

    singer-python loads the ``logging.conf`` of its own package at each call, which removes every handler. This patches
    ``logging.config.fileConfig`` to skip that file; it still loads any other file.

    Returns:
        A stack that undoes it, with ``close()`` or at the end of a ``with`` block.
    """
    import logging.config as stdlib

    load = stdlib.fileConfig
    stack = ExitStack()
    is_active = True
    if getattr(load, "keeps_handlers", False):
        return stack

    @functools.wraps(load)
    def file_config(fname: Any, *args: Any, **options: Any) -> None:
        if not (is_active and _is_of_singer_python(fname)):
            load(fname, *args, **options)

    def undo() -> None:
        nonlocal is_active
        is_active = False
        if stdlib.fileConfig is file_config:
            stdlib.fileConfig = load

    file_config.keeps_handlers = True  # type: ignore[attr-defined]
    stdlib.fileConfig = file_config
    stack.callback(undo)
    return stack


def _is_of_singer_python(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and str(path).endswith(os.path.join("singer", "logging.conf"))
