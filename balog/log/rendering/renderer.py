"""Make the bytes of an event: id, time, channel, context and payload, without secrets."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from balog.event import FACILITY_VERSION, LEVELS, MAX_CHANNEL_LENGTH, Event, Level, encode, format_timestamp
from balog.event.ids import next_stamp
from balog.log.context import ProcessContext, bound_values, trace_context
from balog.log.rendering.callsites import KEY, CallsiteEncoder, CallsiteFinder
from balog.log.rendering.context_encoder import ContextEncoder
from balog.log.values.encoding import encode_channel
from balog.log.values.value_encoder import encode as encode_value
from balog.log.values.value_encoder import encode_plain, encode_unchanged

if TYPE_CHECKING:
    from balog.common.redaction import Redactor
    from balog.log.values.validation import DeclaredTypeValidator

_HEAD = b'{"schema":"%b","header":{"id":"' % FACILITY_VERSION.encode()
_AFTER_TIMESTAMP = {level: b'","level":"%b","composition":false,"context":{' % level.encode() for level in LEVELS}
_TRACE = "opentelemetry.trace"
_MAX_KNOWN = 256
_MAX_KNOWN_NAME = 256
_modules = sys.modules
counting = threading.RLock()  # a signal handler may log while its thread is counting
os.register_at_fork(before=counting.acquire, after_in_parent=counting.release, after_in_child=counting.release)


class EventRenderer:
    """Makes events. ``render`` is the path of every logging call; what it does itself saves calls.

    Args:
        process_context: the context of the process and its threads.
        redactor: redacts payloads and bound values.
        validator: checks payloads of declared types.
        callsites: finds the caller of a logger, whose place goes to the context.
        strict: whether errors are raised.

    Attributes:
        problems: number of payloads and contexts with a ``problem``: changed to be encoded, or a processor raised.
        encoding: an object that changes when encoded contexts are no longer valid.
    """

    def __init__(
        self,
        process_context: ProcessContext,
        redactor: Redactor | None,
        validator: DeclaredTypeValidator | None,
        callsites: CallsiteFinder | None,
        strict: bool,
    ) -> None:
        self.process_context = process_context
        self.redactor = redactor
        self.validator = validator
        self.callsites = callsites
        self.strict = strict
        self.problems = 0
        self._forget_encoded()

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
        contexts, has_site = self._contexts, frame is not None and self.callsites is not None
        known, context = self.process_context.threads.found or self.process_context.get()
        if bound or bound_values() or contexts.variables is None or _TRACE in _modules:
            context = self._context(bound, encoded_bound, frame if has_site else None)
        elif contexts.variables or has_site:
            quick = contexts.encode_structlog(known, context)
            if quick is None:
                context = self._context(bound, encoded_bound, frame if has_site else None)
            else:
                context = b"%b,%b" % (quick, self._sites.encode(frame)) if frame and has_site else quick
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
        payload, context = self._foreign_payload(event), header.context
        if type(context) is not dict or encode_plain(context) is None:
            context = msgspec.json.decode(self._encode(context))
        elif redactor is not None:
            context = redactor.redact(context)
        channel = header.channel if redactor is None else redactor.redact_text(header.channel)
        if payload is not None or context is not header.context or channel is not header.channel:
            changed = UNSET if payload is None else msgspec.json.decode(payload)
            event = event.with_values(changed, context=context, channel=channel[:MAX_CHANNEL_LENGTH])
        return encode(event)

    def _foreign_payload(self, event: Event) -> bytes | None:
        """Return the JSON of an event's payload that was changed or has secrets; None for the event's own bytes."""
        redactor = self.redactor
        if event.has_changed_payload:
            return self._encode(event.payload)
        if redactor is None:
            return None
        view = event.payload_view
        clean = redactor.redact(view)
        return None if clean is view else self._encode(clean)

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

    def _context(self, bound: Mapping[str, Any], encoded_bound: bytes, frame: FrameType | None) -> bytes:
        """Join the members of the context. If two have the same name, the one nearer to the call wins."""
        known, encoded = self.process_context.get()
        passing = bound_values()
        if self._contexts.structlog_variables():
            known, encoded, _ = self._contexts.join_structlog(known, encoded)
        if passing:
            known, encoded, _ = self._contexts.join(known, encoded, passing, passing)
        trace = trace_context() if _TRACE in _modules else None
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

    def changed(self) -> None:
        """Count an event with a ``problem``."""
        with counting:
            self.problems += 1
