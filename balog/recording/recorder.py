"""Make events from calls, and write them to the outputs.

``configure`` replaces the ``Recorder``. Loggers ask for the current one at every call, so existing loggers follow.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec

from balog.errors import complain
from balog.event import FACILITY_VERSION, LEVELS, MAX_CHANNEL_LENGTH, Event, Level, decode, encode, format_timestamp
from balog.ids import new_id
from balog.outputs import LogOutput
from balog.recording.callsites import KEY, CallsiteEncoder, CallsiteFinder
from balog.recording.context import ProcessContext, bound_values, trace_context
from balog.recording.context_encoder import ContextEncoder
from balog.recording.encoding import encode_channel
from balog.recording.levels import OFF, ChannelLevels
from balog.recording.value_encoder import ValueEncoder

if TYPE_CHECKING:
    from balog.recording.validation import DeclaredTypeValidator
    from balog.recording.volume import Volume
    from balog.redaction import Redactor

_HEAD = b'{"schema":"%b","header":{"id":"' % FACILITY_VERSION.encode()
_AFTER_TIMESTAMP = {level: b'","level":"%b","composition":false,"context":{' % level.encode() for level in LEVELS}
_HELD_BACK = "balog.held_back"
_MAX_KNOWN = 256
_MAX_KNOWN_NAME = 256
_counting = threading.RLock()  # a signal handler may log while its thread is counting
os.register_at_fork(before=_counting.acquire, after_in_parent=_counting.release, after_in_child=_counting.release)


class OutputRoute:
    """One output, and the conditions for the events that go to it.

    Args:
        name: its name in errors.
        threshold: the number of the lowest level, as in ``LEVELS``.
        where: returns whether an event goes to the output; None for all events.
        has_own_level: whether ``threshold`` is the output's own. Otherwise it is that of all outputs, which the levels
            of channels replace.
    """

    def __init__(
        self,
        name: str,
        output: LogOutput,
        threshold: int = 0,
        where: Callable[[Event], bool] | None = None,
        *,
        has_own_level: bool = True,
    ) -> None:
        self.name = name
        self.output = output
        self.threshold = threshold
        self.where = where
        self.has_own_level = has_own_level
        self.lost = 0

    def threshold_under(self, level: int) -> int:
        """Return the output's threshold for a channel that has its own."""
        return max(level, self.threshold) if self.has_own_level else level


class Recorder:
    """Makes events and writes them to outputs. Never raises, unless ``strict``.

    Args:
        routes: the outputs.
        process_context: the context of the process and its threads.
        redactor: redacts payloads and bound values.
        levels: the thresholds of channels by pattern; see ``balog.recording.levels``.
        volume: samples and limits channels.
        validator: checks payloads of declared types.
        processors: callables of structlog's form ``(logger, level, event_dict) -> event_dict``, run before a logger's
            call becomes an event.
        callsites: finds the caller of a logger, whose place goes to the context.
        max_tag_sets: the number of sets of tags that a metric may have before further ones are folded; 0 for no limit.
        with_locals: whether frames of exceptions have their locals.
        strict: whether errors are raised.
        encoder: encodes payloads and bound values.

    Attributes:
        threshold: the lowest level that is written on any channel.
        lost: number of events that could not be made, or that an output did not accept.
        problems: number of payloads and contexts with a ``problem``: changed to be encoded, or a processor raised.
        encoding: an object that changes when encoded contexts of this recorder are no longer valid.
    """

    def __init__(
        self,
        routes: Sequence[OutputRoute],
        process_context: ProcessContext,
        *,
        redactor: Redactor | None = None,
        levels: Mapping[str, int] | None = None,
        volume: Volume | None = None,
        validator: DeclaredTypeValidator | None = None,
        processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]] = (),
        callsites: CallsiteFinder | None = None,
        max_tag_sets: int = 0,
        with_locals: bool = False,
        strict: bool = False,
        encoder: ValueEncoder | None = None,
    ) -> None:
        self.routes = tuple(routes)
        self.process_context = process_context
        self.redactor = redactor
        self.volume = volume
        self.validator = validator
        self.processors = tuple(processors)
        self.callsites = callsites
        self.max_tag_sets = max_tag_sets
        self.with_locals = with_locals
        self.strict = strict
        self.encoder = encoder or ValueEncoder()
        self.lost = 0
        self.problems = 0
        self._only = self.routes[0] if len(routes) == 1 and routes[0].where is None else None
        self._has_conditions = any(route.where is not None for route in routes)
        self._declared_levels = dict(levels or {})
        self._general = next((route.threshold for route in routes if not route.has_own_level), OFF)
        self._is_redirected = False
        self.use_levels({})
        self._forget_encoded()

    def _forget_encoded(self) -> None:
        self._contexts = ContextEncoder(self.encode_context)
        self._sites = CallsiteEncoder(self.encode_context)
        self._channels: dict[str, bytes] = {}
        self.encoding = object()

    def use_levels(self, overrides: Mapping[str, int]) -> None:
        """Replace levels of this recorder's configuration, except those that an output has of its own.

        A recorder of ``redirected`` ignores them.

        Args:
            overrides: thresholds by pattern; an empty pattern is all channels that no other pattern covers.
        """
        if self._is_redirected:
            overrides = {}
        general = overrides.get("", self._general)
        for route in self.routes:
            if not route.has_own_level:
                route.threshold = general
        patterns = self._declared_levels | {pattern: level for pattern, level in overrides.items() if pattern}
        self.levels = ChannelLevels(patterns) if patterns else None
        self._rest = min((route.threshold for route in self.routes), default=OFF)
        self.threshold = min([self._rest, *map(self._threshold_under, patterns.values())])

    def _threshold_under(self, level: int) -> int:
        return min((route.threshold_under(level) for route in self.routes), default=OFF)

    def threshold_of(self, channel: str) -> int:
        """Return the lowest level that is written on a channel."""
        levels = self.levels
        level = None if levels is None else levels.of(channel)
        return self._rest if level is None else self._threshold_under(level)

    def redact_with(self, redactor: Redactor | None) -> None:
        """Replace the redactor, and drop every cached context and channel.

        Encoders read their cache before they read ``redactor``. So a thread that still holds the earlier redactor
        stores its result in a cache that is no longer in use.
        """
        self.redactor = redactor
        self.process_context.clean_with(None if redactor is None else redactor.redact_encoded)
        self._forget_encoded()

    def redirected(self, routes: Sequence[OutputRoute], *, strict: bool) -> Recorder:
        """Return a recorder that makes the same events for other outputs, without levels and volume rules."""
        recorder = Recorder(
            routes,
            self.process_context,
            redactor=self.redactor,
            validator=self.validator,
            processors=self.processors,
            callsites=self.callsites,
            max_tag_sets=self.max_tag_sets,
            with_locals=self.with_locals,
            strict=strict,
            encoder=self.encoder,
        )
        recorder._is_redirected = True
        return recorder

    def share_of(self, channel: str, level: Level) -> float:
        """Return the sampling rate of an event that passes, 1 without sampling; 0 if the event is held back.

        Also reports held-back events when a report is due.
        """
        volume = self.volume
        if volume is None:
            return 1.0
        if volume.due():
            self.report_held_back()
        return volume.rate(channel, level) if volume.admit(channel, level) else 0.0

    def report_held_back(self) -> None:
        """Write one event with the number of events held back since the last report, if there are any."""
        held = self.volume.take() if self.volume is not None else None
        if held:
            self.record("WARNING", _HELD_BACK, held, {}, b"")

    def encode_context(self, values: Mapping[str, Any]) -> bytes:
        """Encode bound values as the members of a JSON object, redacted; empty without values."""
        if not values:
            return b""
        return self._encode(dict(values))[1:-1]

    def encode_channel(self, name: str) -> bytes:
        """Encode a channel's name as a JSON string, redacted; cached by name."""
        channels, redactor = self._channels, self.redactor
        encoded = channels.get(name)
        if encoded is None:
            text = name[: 2 * MAX_CHANNEL_LENGTH]
            encoded = encode_channel(text if redactor is None else redactor.redact_text(text))
            if len(name) <= _MAX_KNOWN_NAME:
                if len(channels) >= _MAX_KNOWN:
                    channels.clear()
                channels[name] = encoded
        return encoded

    def record(
        self,
        level: Level,
        channel: str,
        payload: Any,
        bound: Mapping[str, Any],
        encoded_bound: bytes,
        nanoseconds: int | None = None,
    ) -> None:
        """Write one event.

        Args:
            channel: of any length; cut to a channel's length.
            bound: the logger's own part of the context.
            encoded_bound: the same, from ``encode_context``.
            nanoseconds: since the epoch; None for now.
        """
        self.write(level, self.render(level, channel, payload, bound, encoded_bound, nanoseconds), channel)

    def render(
        self,
        level: Level,
        channel: str,
        payload: Any,
        bound: Mapping[str, Any],
        encoded_bound: bytes,
        nanoseconds: int | None = None,
        frame: FrameType | None = None,
    ) -> bytes:
        """Make the event that ``record`` writes, encoded as one line without a newline.

        Args:
            frame: the caller's, if its place goes to the context.
        """
        encoded = self._encode(payload, self.validator)
        return b"".join(
            (
                _HEAD,
                new_id().encode(),
                b'","channel":',
                self._channels.get(channel) or self.encode_channel(channel),
                b',"timestamp":"',
                format_timestamp(time.time_ns() if nanoseconds is None else nanoseconds).encode(),
                _AFTER_TIMESTAMP[level],
                self._context(bound, encoded_bound, frame if self.callsites is not None else None),
                b'}},"payload":',
                encoded,
                b"}",
            )
        )

    def render_foreign(self, event: Event) -> bytes:
        """Encode an existing event unchanged, except for secrets."""
        redactor, header = self.redactor, event.header
        if redactor is not None:
            payload, context = redactor.redact(event.payload), redactor.redact(header.context)
            channel = redactor.redact_text(header.channel)
            if payload is not event.payload or context is not header.context or channel is not header.channel:
                event = decode(encode(event))  # the original may still be in use
                event.raw_payload = msgspec.Raw(self._encode(payload))
                event.header.context, event.header.channel = context, channel[:MAX_CHANNEL_LENGTH]
        return encode(event)

    def _encode(self, value: Any, validator: DeclaredTypeValidator | None = None) -> bytes:
        """Encode a value as one JSON object without its secrets."""
        redactor = self.redactor
        encoded = self.encoder.encode_plain(value)
        if encoded is not None:
            if validator is not None:
                encoded = validator.check(encoded)
            return encoded if redactor is None else redactor.redact_encoded(encoded)
        if self.strict:
            encoded, data = self.encoder.encode_unchanged(value)
        else:
            encoded, data, is_changed = self.encoder.encode(value, None if redactor is None else redactor.redact_text)
            if is_changed:
                self.changed()
        if validator is not None:
            encoded = validator.check(encoded)
        return encoded if redactor is None else redactor.redact_value(data, encoded)

    def _context(self, bound: Mapping[str, Any], encoded_bound: bytes, frame: FrameType | None) -> bytes:
        """Join the members of the context. Of two with the same name, the one nearer to the call wins."""
        known, encoded = self.process_context.get()
        passing = bound_values()
        if self._contexts.structlog_variables():
            known, encoded, _ = self._contexts.join_structlog(known, encoded)
        if passing:
            known, encoded, _ = self._contexts.join(known, encoded, passing, passing)
        trace = trace_context() if "opentelemetry.trace" in sys.modules else None
        if trace and known.keys().isdisjoint(trace):
            known = {**known, **trace}
            encoded = b"%b,%b" % (encoded, self.encode_context(trace))
        if bound and known.keys().isdisjoint(bound):
            encoded = b"%b,%b" % (encoded, encoded_bound)
        elif bound:
            encoded = self._contexts.join(known, encoded, bound, encoded_bound)[1]
        if frame is not None and KEY not in known and KEY not in bound:
            encoded = b"%b,%b" % (encoded, self._sites.encode(frame))
        return encoded

    def write(self, level: str, event: bytes, channel: str = "") -> None:
        """Write an encoded event, whose level passes, to every matching output.

        A failing output does not affect the others.
        """
        only = self._only
        if only is not None:
            try:
                only.output.write(level, event)
            except Exception as error:
                self._failed(only, error)
                if self.strict:
                    raise
            return
        number = LEVELS[level]
        whole = decode(event) if self._has_conditions else None
        is_covered = self.levels is not None and self.levels.of(channel) is not None
        for route in self.routes:
            if number >= route.threshold or (is_covered and not route.has_own_level):
                try:
                    if route.where is None or whole is None or route.where(whole):
                        route.output.write(level, event)
                except Exception as error:
                    self._failed(route, error)
                    if self.strict:
                        raise

    def _failed(self, route: OutputRoute, error: Exception) -> None:
        with _counting:
            self.lost += 1
            route.lost += 1
            is_first = route.lost == 1
        if is_first and route.name != "stderr":
            complain(f"output {route.name}: {type(error).__name__}: {error}; rejected events are counted")

    def failed(self) -> None:
        """Count an event that could not be made."""
        with _counting:
            self.lost += 1

    def changed(self) -> None:
        """Count an event with a ``problem``."""
        with _counting:
            self.problems += 1

    def flush(self, deadline: float = 5.0) -> int:
        """Wait at most ``deadline`` seconds for delivery of queued events; return the number of lost events so far."""
        return self.lost + self._each_output(lambda output, seconds: output.flush(seconds), deadline)

    def close(self, deadline: float = 5.0) -> int:
        """Report held-back events, flush, and close the outputs."""
        try:
            self.report_held_back()
        except Exception:
            self.failed()
        return self.lost + self._each_output(lambda output, seconds: output.close(seconds), deadline)

    def _each_output(self, act: Callable[[LogOutput, float], int], deadline: float) -> int:
        until = time.monotonic() + deadline
        lost = 0
        for route in self.routes:
            try:
                lost += act(route.output, max(0.0, until - time.monotonic()))
            except Exception as error:
                self._failed(route, error)
        return lost
