"""Log events through structlog: ``get_logger(name).info("done", payload={…})``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from balog.event import LEVELS, Level, parse_level
from balog.outputs.calls import with_exception
from balog.payload import log_payload
from balog.recording import configuration, exceptions
from balog.recording.channels import LoggerChannel, channel_of_caller
from balog.recording.context import bound
from balog.recording.encoding import message_text, payload_of
from balog.recording.json_values import safe_str
from balog.recording.raw_events import NO_EVENT, parse_raw_event
from balog.recording.recorder import Recorder
from balog.recording.validation import PayloadError

__all__ = ["EventLogger", "bound", "emit", "get_logger"]


class EventLogger(structlog.BoundLoggerBase):
    """A structlog logger that writes events.

    Each method takes ``event`` (with a payload: the suffix of the channel; without one: the message of a ``log``
    payload), arguments for its ``%`` or ``{}``, ``payload`` (a dict, dataclass, msgspec Struct, pydantic model …),
    ``channel`` (instead of the logger's own), ``exc_info``, ``raw_event`` (an ``Event``, its dict or its JSON, written
    as it is instead of a new event) and any further fields. ``bind``, ``unbind`` and ``new`` are structlog's; bound
    values go to the header's context.
    """

    _logger: LoggerChannel
    _encoded: tuple[object, bytes] | None = None

    def debug(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at DEBUG."""
        recorder = configuration._current or configuration.current()
        if recorder.threshold <= 10:
            self._log(recorder, "DEBUG", event, args, payload, channel, fields)

    def info(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at INFO."""
        recorder = configuration._current or configuration.current()
        if recorder.threshold <= 20:
            self._log(recorder, "INFO", event, args, payload, channel, fields)

    def warning(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at WARNING."""
        recorder = configuration._current or configuration.current()
        if recorder.threshold <= 30:
            self._log(recorder, "WARNING", event, args, payload, channel, fields)

    def error(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at ERROR."""
        recorder = configuration._current or configuration.current()
        if recorder.threshold <= 40:
            self._log(recorder, "ERROR", event, args, payload, channel, fields)

    def critical(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at CRITICAL."""
        recorder = configuration._current or configuration.current()
        if recorder.threshold <= 50:
            self._log(recorder, "CRITICAL", event, args, payload, channel, fields)

    def exception(
        self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any
    ) -> None:
        """Log at ERROR with the exception that is being handled."""
        fields.setdefault("exc_info", True)
        self.error(event, *args, payload=payload, channel=channel, **fields)

    def log(
        self, level: int | str, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any
    ) -> None:
        """Log at a level given by name or by the standard library's number, rounded down."""
        recorder = configuration._current or configuration.current()
        name = level_of(level)
        if recorder.threshold <= LEVELS[name]:
            self._log(recorder, name, event, args, payload, channel, fields)

    def is_enabled_for(self, level: int | str) -> bool:
        """Return whether the logger's channel has events of a level, to skip costly preparations."""
        return LEVELS[level_of(level)] >= configuration.current().threshold_of(self._logger.name)

    def _log(
        self,
        recorder: Recorder,
        level: Level,
        event: Any,
        args: tuple[Any, ...],
        payload: Any,
        channel: Any,
        fields: dict[str, Any],
    ) -> None:
        try:
            if type(event) is not str or args:
                event = message_text(event, args)
            exc_info = None
            if fields:
                exc_info = fields.pop("exc_info", None)
                if "raw_event" in fields:
                    raw = fields.pop("raw_event")
                    if raw is not None and self._write_raw(recorder, level, raw):
                        return
                    if raw is not None:
                        payload = raw if payload is None else payload
                        fields.setdefault("problem", NO_EVENT)
                if not event and "event" in fields:  # as a keyword, as structlog allows
                    event = message_text(fields.pop("event"), ())
            name = self._logger.under("" if payload is None else event) if channel is None else safe_str(channel)
            if recorder.levels is not None and recorder.threshold_of(name) > LEVELS[level]:
                return
            share = 1.0 if recorder.volume is None else recorder.share_of(name, level)
            if not share:
                return
            context, problem = self._context, ""
            if recorder.processors:
                call = _Call(event, name, level, payload, fields, context)
                if not call.process(recorder, self._logger):
                    return
                event, payload, fields, context = call.event, call.payload, call.fields, dict(call.context)
                name, problem = call.channel, call.problem
                encoded_context = recorder.encode_context(context)
            else:
                encoded_context = self._encode_bound(recorder) if context else b""
            if share < 1:
                context = {**context, "sample_rate": share}
                encoded_context = recorder.encode_context(context)
            if payload is None or fields or exc_info is not None or problem:
                payload = self._payload(recorder, level, event, payload, exc_info, fields, problem)
            rendered = recorder.render(level, name, payload, context, encoded_context)
            if exc_info is None:
                recorder.write(level, rendered, name)
            else:
                with with_exception(exceptions.find(exc_info)):
                    recorder.write(level, rendered, name)
        except PayloadError:
            raise
        except Exception:
            recorder.failed()
            if recorder.strict:
                raise

    @staticmethod
    def _write_raw(recorder: Recorder, level: Level, raw: Any) -> bool:
        """Write an event that the program made, unchanged except for secrets. Return False if it is not an event."""
        found = parse_raw_event(raw)
        if found is not None:
            channel, is_written = found.header.channel, recorder.threshold_of(found.header.channel) <= LEVELS[level]
            level = found.level or level
            if is_written and recorder.share_of(channel, level):
                recorder.write(level, recorder.render_foreign(found), channel)
        return found is not None

    @staticmethod
    def _payload(
        recorder: Recorder,
        level: Level,
        event: str,
        payload: Any,
        exc_info: Any,
        fields: dict[str, Any],
        problem: str,
    ) -> Any:
        try:
            made = payload_of(
                event,
                payload,
                exc_info,
                fields,
                severity=level,
                strict=recorder.strict,
                with_locals=recorder.with_locals,
                problem=problem,
                encoder=recorder.encoder,
            )
        except Exception as error:
            if recorder.strict:
                raise
            recorder.changed()
            return log_payload(event, level, problem=f"its payload raised {type(error).__name__}")
        is_changed = not (payload is None or isinstance(payload, dict)) and isinstance(made, dict) and "problem" in made
        if problem or is_changed:
            recorder.changed()
        return made

    def new(self, **new_values: Any) -> EventLogger:
        """Return a logger of the same name with only these values bound."""
        return self.__class__(self._logger, self._processors, new_values)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_encoded"}

    def _encode_bound(self, recorder: Recorder) -> bytes:
        """Encode bound values once for each logger and configuration; a logger's context never changes in place."""
        encoded, key = self._encoded, recorder.encoding
        if encoded is None or encoded[0] is not key:
            encoded = self._encoded = key, recorder.encode_context(self._context)
        return encoded[1]


class _Call:
    """A call in the form of structlog's processors: one dict."""

    def __init__(
        self, event: str, channel: str, level: Level, payload: Any, fields: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        self.event = event
        self.channel = channel
        self.level = level
        self.payload = payload
        self.fields = fields
        self.context: Mapping[str, Any] = context
        self.problem = ""

    def process(self, recorder: Recorder, logger: LoggerChannel) -> bool:
        """Run the processors. Return False if one drops the event.

        Their dict has ``event``, ``channel``, ``level``, ``payload`` (None without one), ``context`` and the call's
        fields. A processor that raises is skipped, and reported in the event's ``problem``.
        """
        data: dict[str, Any] = {
            **self.fields,
            "event": self.event,
            "channel": self.channel,
            "level": self.level,
            "payload": self.payload,
            "context": dict(self.context),
        }
        problems = []
        for processor in recorder.processors:
            try:
                changed = processor(logger, self.level.lower(), dict(data))
                if not isinstance(changed, dict):
                    raise TypeError(f"gave {type(changed).__name__}, no dict")
                data = changed
            except structlog.DropEvent:
                return False
            except Exception as error:
                if recorder.strict:
                    raise
                problems.append(f"a processor raised {type(error).__name__}: {safe_str(error)[:200]}")
        self.event, self.channel = safe_str(data.pop("event", "")), safe_str(data.pop("channel", self.channel))
        self.payload, context = data.pop("payload", None), data.pop("context", {})
        self.context = context if isinstance(context, dict) else {}
        data.pop("level", None)
        self.fields = data
        self.problem = "; ".join(problems)
        return True


def level_of(level: int | str) -> Level:
    """Return the level of a name or of the standard library's number; INFO for other values."""
    try:
        if isinstance(level, str):
            return parse_level(level) or "INFO"
        return next((name for name, number in _FROM_THE_TOP if level >= number), "DEBUG")
    except Exception:  # never lose an event because of its level
        return "INFO"


_FROM_THE_TOP: tuple[tuple[Level, int], ...] = (("CRITICAL", 50), ("ERROR", 40), ("WARNING", 30), ("INFO", 20))


def emit(
    level: Level,
    channel: str,
    payload: Any,
    *,
    context: Mapping[str, Any] | None = None,
    nanoseconds: int | None = None,
) -> None:
    """Write one event without a logger, for handlers and metrics. Never raises, unless ``strict``.

    Args:
        context: keys in addition to those of the process.
        nanoseconds: the time since the epoch; None for now.
    """
    recorder = configuration.current()
    level = level_of(level)
    if recorder.threshold > LEVELS[level]:
        return
    try:
        channel = safe_str(channel)
        share = recorder.share_of(channel, level) if recorder.threshold_of(channel) <= LEVELS[level] else 0.0
        if not share:
            return
        extra = context or {}
        if share < 1:
            extra = {**extra, "sample_rate": share}
        recorder.record(level, channel, payload, extra, recorder.encode_context(extra), nanoseconds)
    except PayloadError:
        raise
    except Exception:
        recorder.failed()
        if recorder.strict:
            raise


def get_logger(name: str | None = None, **context: Any) -> EventLogger:
    """Return a logger with the channel ``name``. Cheap, and safe to call before ``configure``.

    ``logger.info("done", payload=…)`` logs to the channel ``<name>.done``; ``channel=`` replaces the whole channel.

    Args:
        name: usually ``__name__``. None for the name of the calling module, or for the application's in a script.
        context: values that the logger binds.
    """
    return EventLogger(channel_of_caller(1) if name is None else LoggerChannel(name), [], context)
