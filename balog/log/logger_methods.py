"""The methods of structlog's and the standard library's loggers that are made of a few others."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from balog.common.errors import ConfigError
from balog.event import LEVELS, Level
from balog.log.configuration import set_level, state
from balog.log.levels import find_level, level_of
from balog.log.outputs.calls import current
from balog.log.rendering import callsites
from balog.log.values.json_values import safe_str

if TYPE_CHECKING:
    from balog.log.channels import LoggerChannel
    from balog.log.recorder import Recorder

Write = Callable[[str, bytes, str], object]
"""Takes an encoded event: its level, its bytes and its channel, as ``Recorder.write`` does."""


class AsyncMethods:
    """structlog's methods for ``await``. The event is made at the call, with its time, thread, context and exception.

    Only the write to the outputs happens in a thread, and ``await`` returns after it.
    """

    _log: Callable[..., None]

    def adebug(self, event: Any = "", /, *args: Any, **fields: Any) -> Coroutine[Any, Any, None]:
        """Log at DEBUG, and write in a thread."""
        return self._defer("DEBUG", event, args, fields)

    def ainfo(self, event: Any = "", /, *args: Any, **fields: Any) -> Coroutine[Any, Any, None]:
        """Log at INFO, and write in a thread."""
        return self._defer("INFO", event, args, fields)

    def awarning(self, event: Any = "", /, *args: Any, **fields: Any) -> Coroutine[Any, Any, None]:
        """Log at WARNING, and write in a thread."""
        return self._defer("WARNING", event, args, fields)

    def aerror(self, event: Any = "", /, *args: Any, **fields: Any) -> Coroutine[Any, Any, None]:
        """Log at ERROR, and write in a thread."""
        return self._defer("ERROR", event, args, fields)

    def acritical(self, event: Any = "", /, *args: Any, **fields: Any) -> Coroutine[Any, Any, None]:
        """Log at CRITICAL, and write in a thread."""
        return self._defer("CRITICAL", event, args, fields)

    def aexception(self, event: Any = "", /, *args: Any, **fields: Any) -> Coroutine[Any, Any, None]:
        """Log at ERROR with the exception that is being handled, and write in a thread."""
        if fields.get("exc_info", True) is True:
            fields["exc_info"] = sys.exc_info()
        return self._defer("ERROR", event, args, fields)

    def alog(self, level: int | str = "", event: Any = "", /, *args: Any, **fields: Any) -> Coroutine[Any, Any, None]:
        """Log at a level given as for ``log``, and write in a thread."""
        name = level_of_call(level, fields, strict=state.current().strict)
        return self._defer(name, event, args, fields)

    amsg = ainfo
    awarn = awarning
    aerr = aerror
    afatal = acritical

    def _defer(
        self, level: Level, event: Any, args: tuple[Any, ...], fields: dict[str, Any]
    ) -> Coroutine[Any, Any, None]:
        recorder = state.current()
        writes: list[tuple[BaseException | None, tuple[str, bytes, str]]] = []
        if recorder.threshold <= LEVELS[level]:
            payload, channel = fields.pop("payload", None), fields.pop("channel", None)
            later: Write = lambda *made: writes.append((current.exception, made))  # noqa: E731
            self._log(recorder, level, event, args, payload, channel, fields, later)
        return _write_in_thread(recorder, writes)


async def _write_in_thread(
    recorder: Recorder, writes: list[tuple[BaseException | None, tuple[str, bytes, str]]]
) -> None:
    """Write events in asyncio's default executor; without one (trio, the end of a loop), here."""

    def write_all() -> None:
        for error, written in writes:
            with current.with_exception(error):
                recorder.write(*written)

    if not writes:
        return
    try:
        is_written = asyncio.get_running_loop().run_in_executor(None, write_all)
    except RuntimeError:
        write_all()
    else:
        await is_written


def level_of_call(level: object, fields: dict[str, Any], *, strict: bool) -> Level:
    """Return the level of a call of ``log``, which may also name it as a keyword; INFO without one.

    Args:
        fields: the call's keywords; changed. They get a ``problem`` if there is no such level, and the level is INFO.

    Raises:
        ConfigError: there is no such level; only if ``strict``.
    """
    if type(level) is str and not level:
        level = fields.pop("level", "INFO")
    known_level = find_level(level)
    if known_level is None:
        problem = f"no level {safe_str(level, repr)[:40]}; written at INFO"
        if strict:
            raise ConfigError(problem, "log(…)")
        fields.setdefault("problem", problem)
    return known_level or "INFO"


class StdlibMethods:
    """The attributes and methods of ``logging.Logger`` that have a meaning for a logger of events.

    Levels are balog's. Handlers, ``propagate``, ``parent`` and records are those of the standard library's logger with
    the same name; the output ``logging`` writes events there.
    """

    _logger: LoggerChannel

    @property
    def name(self) -> str:
        """The logger's channel."""
        return self._logger.name

    @property
    def level(self) -> int:
        """The lowest level that the logger's channel has, as the standard library's number."""
        return self.get_effective_level()

    def is_enabled_for(self, level: int | str) -> bool:
        """Return whether the logger's channel has events of a level, to skip costly preparations.

        A level that does not exist counts as INFO, at which ``log`` writes it.
        """
        return LEVELS[level_of(level)] >= self.get_effective_level()

    def get_effective_level(self) -> int:
        """Return the lowest level that is written on the logger's channel, as the standard library's number."""
        return state.current().threshold_of(self.name)

    isEnabledFor = is_enabled_for
    getEffectiveLevel = get_effective_level

    def setLevel(self, level: int | str) -> None:
        """Set the lowest level of the logger's channel, as ``balog.set_level``; 0 restores the configured level.

        Raises:
            ConfigError: there is no such level.
        """
        set_level(self.name, level)

    @property
    def _stdlib(self) -> logging.Logger:
        return logging.getLogger(self.name)

    @property
    def parent(self) -> logging.Logger | None:
        """The parent of the standard library's logger."""
        return self._stdlib.parent

    @property
    def propagate(self) -> bool:
        """Whether the standard library's logger passes records to its parent's handlers."""
        return self._stdlib.propagate

    @property
    def handlers(self) -> list[logging.Handler]:
        """The handlers of the standard library's logger."""
        return self._stdlib.handlers

    @property
    def disabled(self) -> bool:
        """Whether the standard library's logger is disabled."""
        return self._stdlib.disabled

    def addHandler(self, hdlr: logging.Handler) -> None:
        """Add a handler to the standard library's logger."""
        self._stdlib.addHandler(hdlr)

    def removeHandler(self, hdlr: logging.Handler) -> None:
        """Remove a handler from the standard library's logger."""
        self._stdlib.removeHandler(hdlr)

    def hasHandlers(self) -> bool:
        """Return whether the standard library's logger or one above it has handlers."""
        return self._stdlib.hasHandlers()

    def handle(self, record: logging.LogRecord) -> None:
        """Pass a record to the standard library's logger."""
        self._stdlib.handle(record)

    def callHandlers(self, record: logging.LogRecord) -> None:
        """Pass a record to the handlers of the standard library's logger and of those above it."""
        self._stdlib.callHandlers(record)

    def makeRecord(self, *args: Any, **options: Any) -> logging.LogRecord:
        """Return a record as ``logging.Logger.makeRecord`` does."""
        return self._stdlib.makeRecord(*args, **options)

    def findCaller(self, stack_info: bool = False, stacklevel: int = 1) -> tuple[str, int, str, str | None]:
        """Return file, line, function and, if wanted, the stack of the caller."""
        frame = callsites.DEFAULT.find(stacklevel, depth=2)
        if frame is None:
            return "(unknown file)", 0, "(unknown function)", None
        site = callsites.describe(frame)
        return site["file"], site["line"], site["func"], callsites.format_stack(frame) if stack_info else None
