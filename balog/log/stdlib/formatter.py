"""The formatter of the standard library's logging that makes a record an event."""

from __future__ import annotations

import logging
from typing import Any

from balog.common.errors import ConfigError
from balog.event import Event, Level
from balog.log.configuration import state
from balog.log.guard import guarded
from balog.log.logger import level_of
from balog.log.outputs.stdio import singer_line
from balog.log.recorder import Recorder
from balog.log.stdlib.records import checked_prefix, fallback_payload, read_record
from balog.log.values.json_values import safe_str


class EventFormatter(logging.Formatter):
    """Formats a record as the event that ``EventHandler`` would write, for any other handler.

    Args:
        fmt: ``json`` for the event in one line, the default, or ``singer`` for a LOG message. Configs of the standard
            library set it as ``format``.
        prefix: put before the loggers' names.

    Raises:
        ConfigError: another format, or ``prefix`` is not a text.
    """

    _root = ""
    """The channel of the root logger's records; see ``read_record``."""

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: Any = "%",
        validate: bool = True,
        *,
        prefix: str | None = None,
        defaults: Any = None,
    ) -> None:
        super().__init__()
        self.form = fmt or "json"
        if self.form not in ("json", "singer"):
            raise ConfigError(f"no format {self.form[:80]!r}; there are json, singer", "EventFormatter")
        self._prefix = checked_prefix(prefix, "EventFormatter")

    @guarded(lambda self, record: "")
    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, without a newline."""
        recorder = state.current()
        try:
            level, event = self._render(record, recorder)
        except Exception as error:
            if recorder.strict:
                raise
            recorder.changed()
            level = level_of(record.levelno)
            event = recorder.render(level, safe_str(record.name), fallback_payload(record, level, error), {}, b"")
        line = singer_line(level, event)[:-1] if self.form == "singer" else event
        return line.decode()

    def _render(self, record: logging.LogRecord, recorder: Recorder) -> tuple[Level, bytes]:
        parts = read_record(record, recorder, self._prefix, self._root)
        if isinstance(parts, Event):
            return parts.level or level_of(record.levelno), recorder.render_foreign(parts)
        context = recorder.encode_context(parts.context)
        return parts.level, recorder.render(
            parts.level, parts.channel, parts.payload, parts.context, context, parts.nanoseconds
        )
