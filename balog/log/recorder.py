"""Make events from calls, and write them to the outputs: id, time, channel, context and payload, without secrets.

``configure`` replaces the ``Recorder``. Loggers ask for the current one at every call, so existing loggers follow.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from balog.event import FACILITY_VERSION, LEVELS, MAX_CHANNEL_LENGTH, Event, Level, decode_own, encode, format_timestamp
from balog.event.ids import next_stamp
from balog.log.context import TRACE, ProcessContext, bound_values
from balog.log.levels import OFF, ChannelLevels
from balog.log.outputs import LogOutput
from balog.log.outputs.route import OutputRoute as OutputRoute
from balog.log.outputs.route import counting
from balog.log.rendering.callsites import CallsiteEncoder, CallsiteFinder
from balog.log.rendering.context_encoder import ContextEncoder
from balog.log.values.encoding import encode_channel
from balog.log.values.value_encoder import encode as encode_value
from balog.log.values.value_encoder import encode_plain, encode_unchanged

if TYPE_CHECKING:
    from balog.common.redaction import Redactor
    from balog.log.values.validation import DeclaredTypeValidator

_HEAD = b'{"schema":"%b","header":{"id":"' % FACILITY_VERSION.encode()
_AFTER_TIMESTAMP = {level: b'","level":"%b","composition":false,"context":{' % level.encode() for level in LEVELS}
_MAX_KNOWN = 256
_MAX_KNOWN_NAME = 256
_modules = sys.modules


class Recorder:
    """Makes events and writes them to outputs. Never raises, unless ``strict``.

    Args:
        routes: the outputs.
        process_context: the context of the process and its threads.
        redactor: redacts payloads and bound values.
        levels: the thresholds of channels by pattern; see ``balog.log.levels``.
        validator: checks payloads of declared types.
        processors: callables of structlog's form ``(logger, level, event_dict) -> event_dict``, run before a logger's
            call becomes an event.
        callsites: finds the caller of a logger, whose place goes to the context.
        strict: whether errors are raised.
        is_redirected: whether levels of ``use_levels`` are ignored.

    Attributes:
        problems: number of payloads and contexts with a ``problem``: changed to be encoded, or a processor raised.
        encoding: an object that changes when encoded contexts are no longer valid.
        threshold: the lowest level that is written on any channel.
        lost: number of events that could not be made, or that an output did not accept.
    """

    def __init__(
        self,
        routes: Sequence[OutputRoute],
        process_context: ProcessContext,
        *,
        redactor: Redactor | None = None,
        levels: Mapping[str, int] | None = None,
        validator: DeclaredTypeValidator | None = None,
        processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]] = (),
        callsites: CallsiteFinder | None = None,
        strict: bool = False,
        is_redirected: bool = False,
    ) -> None:
        self.process_context = process_context
        self.redactor = redactor
        self.validator = validator
        self.callsites = callsites
        self.strict = strict
        self.problems = 0
        self._forget_encoded()
        self.routes = tuple(routes)
        self.processors = tuple(processors)
        self.lost = 0
        self._only = self.routes[0] if len(routes) == 1 and routes[0].where is None else None
        self._has_conditions = any(route.where is not None for route in routes)
        self._declared_levels = dict(levels or {})
        self._general = next((route.threshold for route in routes if not route.has_own_level), OFF)
        self._is_redirected = is_redirected
        self.use_levels({})

    def use_levels(self, overrides: Mapping[str, int]) -> None:
        """Replace levels of this recorder's configuration, except those that an output has of its own.

        Args:
            overrides: thresholds by pattern; an empty pattern is all channels that no other pattern covers.
        """
        if self._is_redirected:
            overrides = {}
        general = overrides.get("", self._general)
        for route in self.routes:
            route.use_general(general)
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

    def redirected(self, routes: Sequence[OutputRoute], *, strict: bool) -> Recorder:
        """Return a recorder that makes the same events for other outputs, without levels."""
        return Recorder(
            routes,
            self.process_context,
            redactor=self.redactor,
            validator=self.validator,
            processors=self.processors,
            callsites=self.callsites,
            strict=strict,
            is_redirected=True,
        )

    def _forget_encoded(self) -> None:
        self._contexts = ContextEncoder(self.encode_context, self._keeps_numbers_of)
        self._sites = CallsiteEncoder(self.encode_context)
        self._channels: dict[str, bytes] = {}
        self.encoding = object()

    def redact_with(self, redactor: Redactor | None) -> None:
        """Replace the redactor, and drop every cached context and channel.

        Encoders read their cache before they read ``redactor``. So a thread that still holds the earlier redactor
        stores its result in a cache that is no longer in use.
        """
        self.redactor = redactor
        self.process_context.clean_with(None if redactor is None else redactor.redact_encoded)
        self._forget_encoded()

    def encode_context(self, values: Mapping[str, Any]) -> bytes:
        """Encode bound values as the members of a JSON object, redacted; empty without values."""
        if not values:
            return b""
        return self._encode(dict(values))[1:-1]

    def _keeps_numbers_of(self, name: str) -> bool:
        redactor = self.redactor
        return redactor is None or redactor.keeps_numbers_of(name)

    def _channel(self, name: str) -> bytes:
        """Encode a channel's name, redacted, with the keys around it; cached by name."""
        channels, redactor = self._channels, self.redactor
        text = name[: 2 * MAX_CHANNEL_LENGTH]
        encoded = encode_channel(text if redactor is None else redactor.redact_text(text))
        encoded = b'","channel":%b,"timestamp":"' % encoded
        if len(name) <= _MAX_KNOWN_NAME:
            if len(channels) >= _MAX_KNOWN:
                channels.clear()
            channels[name] = encoded
        return encoded

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
        """Make one event, encoded as one line without a newline.

        Args:
            channel: of any length; cut to a channel's length.
            bound: the logger's own part of the context.
            encoded_bound: the same, from ``encode_context``.
            nanoseconds: since the epoch; None for now.
            frame: the caller's, if its place goes to the context.
        """
        encoded, redactor = encode_plain(payload), self.redactor
        if (
            encoded is None
            or self.validator is not None
            or (redactor is not None and encoded.translate(redactor.fold) not in redactor.known_clean)
        ):
            encoded = self._finish(payload, encoded, self.validator)
        contexts, process = self._contexts, self.process_context.threads.found or self.process_context.get()
        site = b"" if frame is None or self.callsites is None else self._sites.encode(frame)
        if bound or bound_values() or contexts.variables is None or TRACE in _modules:
            context = contexts.join_all(process, bound, encoded_bound, site)
        elif contexts.variables:
            quick = contexts.encode_structlog(*process)
            if quick is None:
                context = contexts.join_all(process, bound, encoded_bound, site)
            else:
                context = b"%b,%b" % (quick, site) if site else quick
        else:
            context = b"%b,%b" % (process[1], site) if site else process[1]
        id, end_of_id, time, microseconds = next_stamp()
        if nanoseconds is not None:
            time, microseconds = format_timestamp(nanoseconds).encode(), b""
        return b"".join(
            (
                _HEAD,
                id,
                end_of_id,
                self._channels.get(channel) or self._channel(channel),
                time,
                microseconds,
                _AFTER_TIMESTAMP[level],
                context,
                b'}},"payload":',
                encoded,
                b"}",
            )
        )

    def render_foreign(self, event: Event) -> bytes:
        """Encode an existing event unchanged, except for secrets and for values without a JSON form.

        Raises:
            Exception: a value of a changed payload or of the context has no JSON form; only if ``strict``.
        """
        redactor, header = self.redactor, event.header
        payload, context, channel = UNSET, header.context, header.channel
        if event.has_changed_payload:
            payload = msgspec.json.decode(self._encode(event.payload))
        elif redactor is not None:
            clean = redactor.redact(event.payload_view)
            payload = UNSET if clean is event.payload_view else clean
        if type(context) is not dict or encode_plain(context) is None:
            context = msgspec.json.decode(self._encode(context))
        elif redactor is not None:
            context = redactor.redact(context)
        if redactor is not None:
            channel = redactor.redact_text(channel)
        if payload is not UNSET or context is not header.context or channel is not header.channel:
            event = event.with_values(payload, context=context, channel=channel[:MAX_CHANNEL_LENGTH])
        return encode(event)

    def _encode(self, value: Any) -> bytes:
        """Encode a value as one JSON object without its secrets."""
        return self._finish(value, encode_plain(value), None)

    def _finish(self, value: Any, encoded: bytes | None, validator: DeclaredTypeValidator | None) -> bytes:
        """Check and redact a value that is encoded, or encode a value that is not plain first."""
        redactor = self.redactor
        if encoded is not None:
            if validator is not None:
                encoded = validator.check(encoded)
            return encoded if redactor is None else redactor.redact_encoded(encoded)
        if self.strict:
            encoded, data = encode_unchanged(value)
        else:
            encoded, data, is_changed = encode_value(value, None if redactor is None else redactor.redact_text)
            if is_changed:
                self.changed()
        if validator is not None:
            encoded = validator.check(encoded)
        return encoded if redactor is None else redactor.redact_value(data, encoded)

    def write(self, level: str, event: bytes, channel: str = "") -> None:
        """Write an encoded event, whose level passes, to every matching output.

        A failing output does not affect the others.
        """
        only = self._only
        if only is not None:
            try:
                only.output.write(level, event)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                self._failed(only, error)
                if self.strict:
                    raise
            return
        number = LEVELS[level]
        whole = decode_own(event) if self._has_conditions else None
        is_covered = self.levels is not None and self.levels.of(channel) is not None
        for route in self.routes:
            if number >= route.threshold or (is_covered and not route.has_own_level):
                try:
                    if route.where is None or whole is None or route.where(whole):
                        route.output.write(level, event)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:
                    self._failed(route, error)
                    if self.strict:
                        raise

    def _failed(self, route: OutputRoute, error: BaseException) -> None:
        self.failed()
        route.reject(error)

    def changed(self) -> None:
        """Count an event with a ``problem``."""
        with counting:
            self.problems += 1

    def failed(self) -> None:
        """Count an event that could not be made."""
        with counting:
            self.lost += 1

    def flush(self, deadline: float = 5.0) -> int:
        """Wait at most ``deadline`` seconds for delivery of queued events; return the number of lost events so far."""
        return self.lost + self._each_output(lambda output, seconds: output.flush(seconds), deadline)

    def close(self, deadline: float = 5.0) -> int:
        """Flush, and close the outputs."""
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
