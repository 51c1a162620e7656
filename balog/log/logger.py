"""Log events through structlog: ``get_logger(name).info("done", payload={…})``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from balog.event import LEVELS, Event, Level
from balog.event.log_payload import log_payload
from balog.log.channels import LoggerChannel, channel_of_caller
from balog.log.configuration import state
from balog.log.context import bound
from balog.log.guard import guarded
from balog.log.levels import level_of
from balog.log.logger_methods import AsyncMethods, StdlibMethods, Write, level_of_call
from balog.log.outputs.calls import current
from balog.log.processing import ProcessedCall, process
from balog.log.recorder import Recorder
from balog.log.rendering import callsites
from balog.log.rendering.call_options import OPTION_NAMES, CallOptions
from balog.log.values import exceptions
from balog.log.values.encoding import message_text, payload_of
from balog.log.values.json_values import replaced, safe_str, type_name
from balog.log.values.validation import PayloadError

__all__ = ["EventLogger", "bound", "emit", "get_logger", "level_of"]


class EventLogger(AsyncMethods, StdlibMethods, structlog.BoundLoggerBase):
    """A structlog logger that writes events.

    Each method takes ``event`` (with a payload: the suffix of the channel; without one: the message of a ``log``
    payload), arguments for its ``%`` or ``{}``, and any fields as keywords. These keywords are not fields:

    - ``payload``: a dict, dataclass, msgspec Struct, pydantic model …
    - ``channel``: the event's channel, instead of one below the logger's.
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
        recorder = state.recorder
        if recorder is None or recorder.threshold <= 10:
            self._log(recorder, "DEBUG", event, args, payload, channel, fields)

    def info(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at INFO."""
        recorder = state.recorder
        if recorder is None or recorder.threshold <= 20:
            self._log(recorder, "INFO", event, args, payload, channel, fields)

    def warning(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at WARNING."""
        recorder = state.recorder
        if recorder is None or recorder.threshold <= 30:
            self._log(recorder, "WARNING", event, args, payload, channel, fields)

    def error(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at ERROR."""
        recorder = state.recorder
        if recorder is None or recorder.threshold <= 40:
            self._log(recorder, "ERROR", event, args, payload, channel, fields)

    def critical(self, event: Any = "", /, *args: Any, payload: Any = None, channel: Any = None, **fields: Any) -> None:
        """Log at CRITICAL."""
        recorder = state.recorder
        if recorder is None or recorder.threshold <= 50:
            self._log(recorder, "CRITICAL", event, args, payload, channel, fields)

    def exception(self, event: Any = "", /, *args: Any, **fields: Any) -> None:
        """Log at ERROR with the exception that is being handled."""
        self.error(event, *args, **{"exc_info": True, **fields})

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
        recorder = state.current()
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
        recorder: Recorder | None,
        level: Level,
        event: Any,
        args: tuple[Any, ...],
        payload: Any,
        channel: Any,
        fields: dict[str, Any],
        write: Write | None = None,
    ) -> None:
        """Write the event of a call: its message, options, channel, callsite, processors and payload, in this order.

        If that raises, write it without the values that raise.

        Args:
            recorder: None before the first event, which configures the process.
            fields: the call's keywords; changed.
            write: receives the event, with the arguments of ``Recorder.write``; None for that method.
        """
        if recorder is None:
            self.log(level, event, *args, payload=payload, channel=channel, **fields)
            return
        asked, call = level, (event, args, payload, channel, fields)
        options, exc_info, problem, frame = None, None, "", None
        try:
            if args or event.__class__ is not str:
                event = message_text(event, args, strict=recorder.strict)
            if payload.__class__ is Event or (fields and not OPTION_NAMES.isdisjoint(fields)):
                options = CallOptions(fields)
                event, payload, raw_event = options.apply(event, fields, payload, strict=recorder.strict)
                if raw_event is not None:
                    write_raw(recorder, level, raw_event, write or recorder.write)
                    return
            suffix = "" if payload is None else event
            if channel is None:
                name = self._logger.known.get(suffix) or self._logger.under(suffix)
            else:
                name = safe_str(channel)
            if recorder.levels is not None and recorder.threshold_of(name) > LEVELS[level]:
                return
            context: Mapping[str, Any] = self._context
            if recorder.callsites is not None or recorder.processors or options is not None:
                finder = recorder.callsites or callsites.DEFAULT
                frame = finder.find(1 if options is None else options.stacklevel)
                if options is not None:
                    exc_info, problem = options.exc_info, options.evaluate(fields, frame, strict=recorder.strict)
            encoded_context = self._encode_bound(recorder) if context else b""
            if recorder.processors:
                processing = ProcessedCall(event, name, level, payload, fields, context, problem)
                processed = process(processing, recorder, self._logger, frame)
                if processed is None:
                    return
                event, name, level, payload, fields, context, problem = processed
                encoded_context, frame = recorder.encode_context(context), None  # the context has the callsite
            if payload is None and exc_info is None and not problem:
                payload = log_payload(event, level, fields=fields)
            elif fields or exc_info is not None or problem:
                payload = _payload(recorder, level, event, payload, exc_info, fields, problem)
            rendered = recorder.render(level, name, payload, context, encoded_context, None, frame)
            if exc_info is None:
                (write or recorder.write)(level, rendered, name)
            else:
                with current.with_exception(exceptions.find(exc_info)):
                    (write or recorder.write)(level, rendered, name)
        except BaseException as error:  # such as the panic of an extension in Rust
            self._log_replaced(recorder, asked, error, call, write)

    @guarded()
    def _log_replaced(
        self, recorder: Recorder, level: Level, error: BaseException, call: tuple[Any, ...], write: Write | None
    ) -> None:
        """Write the event of a call that raised, without the values that raise.

        Args:
            call: message, arguments, payload, channel and fields.
        """
        if recorder.strict or isinstance(error, PayloadError | KeyboardInterrupt | SystemExit):
            raise error
        event, args, payload, channel, fields = call
        problem = f"the call raised {type_name(error)}; values that raise are replaced"
        logger = _LoggerOfReplaced(self._logger, self._processors, replaced(self._context))
        event, args, payload, channel, fields = map(
            replaced, (event, args, payload, channel, {**fields, "problem": problem})
        )
        logger._log(recorder, level, event, args, payload, channel, fields, write)
        recorder.changed()

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


class _LoggerOfReplaced(EventLogger):
    """A logger of values that can't raise. A call that raises nevertheless is not written."""

    def _log_replaced(self, recorder: Recorder, level: Level, error: BaseException, *call: Any) -> None:
        raise error


def write_raw(recorder: Recorder, level: Level, event: Event, write: Write) -> None:
    """Write an event that the program made, unchanged except for secrets, if its channel has its level."""
    channel = event.header.channel
    if recorder.threshold_of(channel) <= LEVELS[level]:
        write(event.level or level, recorder.render_foreign(event), channel)


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
    recorder = state.current()
    level = level_of(level)
    if recorder.threshold > LEVELS[level]:
        return
    if type(payload) is Event:
        write_raw(recorder, level, payload, recorder.write)
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
