"""Log events through structlog: ``get_logger(name).info("done", payload={…})``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from balog.event import LEVELS, Event, Level
from balog.event.log_payload import log_payload
from balog.log import configuration
from balog.log.calls.channels import LoggerChannel, channel_of_caller
from balog.log.calls.guard import guarded
from balog.log.calls.method_switch import MethodSwitch
from balog.log.context import bound
from balog.log.levels import level_of
from balog.log.logger_methods import AsyncMethods, StdlibMethods, level_of_call
from balog.log.outputs.calls import with_exception
from balog.log.processing import ProcessedCall
from balog.log.recorder import Recorder
from balog.log.rendering import callsites
from balog.log.rendering.call_options import NO_PAYLOAD, OPTION_NAMES, CallOptions
from balog.log.rendering.raw_events import NO_EVENT, parse_raw_event
from balog.log.values import exceptions
from balog.log.values.encoding import message_text, payload_of
from balog.log.values.json_values import replaced, safe_str, type_name
from balog.log.values.validation import PayloadError

__all__ = ["EventLogger", "bound", "emit", "get_logger", "level_of"]


class EventLogger(AsyncMethods, StdlibMethods, structlog.BoundLoggerBase):
    """A structlog logger that writes events.

    Each method takes ``event`` (with a payload: the suffix of the channel; without one: the message of a ``log``
    payload), arguments for its ``%`` or ``{}``, ``payload`` (a dict, dataclass, msgspec Struct, pydantic model …),
    ``channel`` (instead of the logger's own) and any further fields. These keywords are not fields:

    - ``exc_info``: an exception, or True for the one that is being handled.
    - ``lazy``: a dict of callables, or a callable that returns a dict, for fields that only a written event needs.
    - ``stack_info``: True adds the caller's stack.
    - ``stacklevel``: whose callsite and stack to use, 1 for the caller's, as in the standard library.
    - ``extra``: a dict of fields, as in the standard library.
    - ``raw_event``: an ``Event``, its dict or its JSON, written as it is instead of a new event. An ``Event`` as
      ``payload`` is likewise.

    ``bind``, ``unbind``, ``try_unbind`` and ``new`` are structlog's; bound values go to the header's context. Each
    method has an ``async`` form, such as ``ainfo``.
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
        self,
        level: int | str = "",
        event: Any = "",
        /,
        *args: Any,
        payload: Any = None,
        channel: Any = None,
        **fields: Any,
    ) -> None:
        """Log at a level given by name or by the standard library's number, rounded down."""
        recorder = configuration._current or configuration.current()
        name = level_of_call(level, fields, strict=recorder.strict)
        if recorder.threshold <= LEVELS[name]:
            self._log(recorder, name, event, args, payload, channel, fields)

    msg = info
    warn = warning
    err = failure = error
    fatal = critical

    def getChild(self, suffix: str) -> EventLogger:
        """Return a logger of a channel below this one, with the same values bound."""
        return EventLogger(LoggerChannel(self._logger.under(safe_str(suffix))), self._processors, self._context)

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
            is_message = payload is None and OPTION_NAMES.isdisjoint(fields)
            if (
                not (is_message or (payload.__class__ is dict and not fields))
                or channel is not None
                or args
                or event.__class__ is not str
                or not recorder.is_direct
            ):
                self._log_any(recorder, level, event, args, payload, channel, fields)
                return
            suffix = "" if is_message else event
            name = self._logger.known.get(suffix) or self._logger.under(suffix)
            if is_message:
                payload = log_payload(event, level, fields=fields)
            context = self._context
            encoded_context = self._encode_bound(recorder) if context else b""
            frame = None if recorder.callsites is None else recorder.callsites.find()
            rendered = recorder.render(level, name, payload, context, encoded_context, None, frame)
            recorder.write(level, rendered, name)
        except (PayloadError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # such as the panic of an extension in Rust
            if recorder.strict:
                recorder.failed()
                raise
            problem = f"the call raised {type_name(error)}; values that raise are replaced"
            self._log_replaced(recorder, level, event, args, payload, channel, {**fields, "problem": problem})

    @guarded()
    def _log_replaced(self, recorder: Recorder, level: Level, *call: Any) -> None:
        """Write the event of a call that raised, without the values that raise; ``call`` is as for ``_log_any``."""
        logger = EventLogger(self._logger, self._processors, replaced(self._context))
        logger._log_any(recorder, level, *map(replaced, call))
        recorder.changed()

    def _log_any(
        self,
        recorder: Recorder,
        level: Level,
        event: Any,
        args: tuple[Any, ...],
        payload: Any,
        channel: Any,
        fields: dict[str, Any],
    ) -> None:
        """Write the event of any call. ``_log`` writes that of the usual call in the same way."""
        if type(event) is not str or args:
            event = message_text(event, args)
        if payload.__class__ is Event and self._write_raw(recorder, level, payload):
            return
        options = None
        if fields and not OPTION_NAMES.isdisjoint(fields):
            options = CallOptions(fields)
            event = options.message(event, fields)
            event, payload = options.take_extra(event, fields, payload)
            if options.raw_event is not None:
                if self._write_raw(recorder, level, options.raw_event):
                    return
                if payload is not None:
                    fields.setdefault("raw_event", options.raw_event)
                else:
                    payload = options.raw_event
                    payload = {"value": payload} if isinstance(payload, NO_PAYLOAD) else payload
                fields.setdefault("problem", NO_EVENT)
        name = self._logger.under("" if payload is None else event) if channel is None else safe_str(channel)
        if recorder.levels is not None and recorder.threshold_of(name) > LEVELS[level]:
            return
        self._log_call(recorder, level, event, name, payload, fields, options)

    def _log_call(
        self,
        recorder: Recorder,
        level: Level,
        event: str,
        name: str,
        payload: Any,
        fields: dict[str, Any],
        options: CallOptions | None,
    ) -> None:
        """Write the event of a call whose message, payload and channel are known."""
        exc_info, problem, frame, context = None, "", None, self._context
        if options is not None:
            exc_info, problem = options.exc_info, options.evaluate(fields, strict=recorder.strict)
        if recorder.processors or recorder.callsites is not None or (options is not None and options.has_stack):
            finder = recorder.callsites or callsites.DEFAULT
            frame = finder.find(1 if options is None else options.stacklevel)
            if frame is not None and options is not None and options.has_stack:
                fields["stack_info"] = callsites.format_stack(frame)
        if recorder.processors:
            call = ProcessedCall(event, name, level, payload, fields, context)
            if not call.process(recorder, self._logger, frame):
                return
            event, payload, fields, context = call.event, call.payload, call.fields, call.context
            name, level, problem = call.channel, call.level, "; ".join(filter(None, (problem, call.problem)))
            encoded_context, frame = recorder.encode_context(context), None  # the context has the callsite
        else:
            encoded_context = self._encode_bound(recorder) if context else b""
        if payload is None or fields or exc_info is not None or problem:
            payload = self._payload(recorder, level, event, payload, exc_info, fields, problem)
        rendered = recorder.render(level, name, payload, context, encoded_context, frame=frame)
        if exc_info is None:
            recorder.write(level, rendered, name)
        else:
            with with_exception(exceptions.find(exc_info)):
                recorder.write(level, rendered, name)

    @staticmethod
    def _write_raw(recorder: Recorder, level: Level, raw: Any) -> bool:
        """Write an event that the program made, unchanged except for secrets. Return False if it is not an event."""
        event = parse_raw_event(raw)
        if event is not None:
            channel, is_written = event.header.channel, recorder.threshold_of(event.header.channel) <= LEVELS[level]
            level = event.level or level
            if is_written:
                recorder.write(level, recorder.render_foreign(event), channel)
        return event is not None

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
            data = payload_of(event, payload, exc_info, fields, severity=level, strict=recorder.strict, problem=problem)
        except Exception as error:
            if recorder.strict:
                raise
            recorder.changed()
            return log_payload(event, level, problem=f"its payload raised {type(error).__name__}")
        is_changed = not (payload is None or isinstance(payload, dict)) and isinstance(data, dict) and "problem" in data
        if problem or is_changed:
            recorder.changed()
        return data

    @guarded(object.__repr__)
    def __repr__(self) -> str:
        return super().__repr__()

    __hash__ = structlog.BoundLoggerBase.__hash__

    @guarded(lambda self, other: False)
    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)

    @guarded(lambda self, *keys: self)
    def try_unbind(self, *keys: str) -> EventLogger:
        """Return a logger without these keys; missing keys are ignored."""
        return super().try_unbind(*keys)

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


configuration.on_levels(MethodSwitch(EventLogger).use_levels)


@guarded()
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
        payload: as for a logger; an ``Event`` is written as it is.
        context: keys in addition to those of the process.
        nanoseconds: the time since the epoch; None for now.
    """
    recorder = configuration.current()
    level = level_of(level)
    if recorder.threshold > LEVELS[level]:
        return
    if type(payload) is Event and EventLogger._write_raw(recorder, level, payload):
        return
    channel = safe_str(channel)
    if recorder.threshold_of(channel) > LEVELS[level]:
        return
    extra = context or {}
    event = recorder.render(level, channel, payload, extra, recorder.encode_context(extra), nanoseconds)
    recorder.write(level, event, channel)


def get_logger(name: str | None = None, **context: Any) -> EventLogger:
    """Return a logger with the channel ``name``. Cheap, and safe to call before ``configure``.

    ``logger.info("done", payload=…)`` logs to the channel ``<name>.done``; ``channel=`` replaces the whole channel.

    Args:
        name: usually ``__name__``. None for the name of the calling module, or for the application's in a script.
        context: values that the logger binds.
    """
    return EventLogger(channel_of_caller(1) if name is None else LoggerChannel(name), [], context)
