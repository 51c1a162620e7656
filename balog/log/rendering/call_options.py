"""The keywords of a logging call that are not fields: ``exc_info``, ``lazy``, ``raw_event``, ``stack_info`` …"""

from __future__ import annotations

from contextlib import suppress
from types import FrameType
from typing import Any

import msgspec

from balog.common.errors import EventError
from balog.event import Event, decode
from balog.log.rendering import callsites
from balog.log.values.encoding import message_text
from balog.log.values.json_values import safe_str

NO_PAYLOAD = (str, bytes, bytearray, int, float, list, tuple, set, type(None))
"""Types of a value named ``payload`` in ``extra`` that is a field like any other."""

_NO_EVENT = "raw_event is no event; it is written as a payload"

OPTION_NAMES = frozenset({"event", "exc_info", "extra", "lazy", "raw_event", "stack_info", "stacklevel"})


class CallOptions:
    """The options of one call, taken out of its fields.

    Args:
        fields: the call's keywords; changed.

    Attributes:
        exc_info: an exception, ``sys.exc_info()``, or True for the exception that is being handled.
        stacklevel: whose callsite and stack to use, 1 for the caller, as in the standard library.
        has_stack: whether the caller's stack is wanted.
    """

    __slots__ = ("_extra", "_lazy", "_raw_event", "exc_info", "has_stack", "stacklevel")

    def __init__(self, fields: dict[str, Any]) -> None:
        take = fields.pop
        self.exc_info = take("exc_info", None)
        self._raw_event = take("raw_event", None)
        self.stacklevel: int = take("stacklevel") if isinstance(fields.get("stacklevel"), int) else 1
        self.has_stack = fields.get("stack_info") is True
        if "stack_info" in fields and (self.has_stack or not isinstance(fields["stack_info"], str)):
            take("stack_info")
        self._lazy: Any = None
        if "lazy" in fields and (callable(fields["lazy"]) or isinstance(fields["lazy"], dict)):
            self._lazy = take("lazy")
        self._extra: dict[Any, Any] = take("extra") if isinstance(fields.get("extra"), dict) else {}

    def apply(self, event: str, fields: dict[str, Any], payload: Any, *, strict: bool) -> tuple[str, Any, Event | None]:
        """Read the message as a keyword, as structlog allows, ``extra``, whose values the fields hide, and a raw event.

        Args:
            event: the call's event.
            fields: the call's keywords; changed.
            payload: the call's payload. Without one, a payload in ``extra`` is it, and the message becomes a field.

        Returns:
            The event, the payload, and an event that the program made, to be written instead of a new one.

        Raises:
            EventError: ``raw_event`` is no event; only if ``strict``.
        """
        if payload.__class__ is Event:
            return event, None, payload
        if not event and "event" in fields:
            event = message_text(fields.pop("event"), ())
        for name, value in self._extra.items():
            if name == "payload" and payload is None and not isinstance(value, NO_PAYLOAD):
                fields.setdefault("message", event)
                event, payload = "", value
            else:
                fields.setdefault(safe_str(name), value)
        if self._raw_event is None:
            return event, payload, None
        raw_event = _parse_raw_event(self._raw_event)
        if raw_event is None:
            if strict:
                raise EventError("raw_event is no event; expected an Event, its dict or its JSON")
            if payload is not None:
                fields.setdefault("raw_event", self._raw_event)
            else:
                payload = self._raw_event
                payload = {"value": payload} if isinstance(payload, NO_PAYLOAD) else payload
            fields.setdefault("problem", _NO_EVENT)
        return event, payload, raw_event

    def evaluate(self, fields: dict[str, Any], frame: FrameType | None, *, strict: bool) -> str:
        """Add the caller's stack and the values of ``lazy`` to the fields, whose own values win.

        Args:
            fields: the call's keywords; changed.
            frame: the caller's.
            strict: whether errors of the callables are raised.

        Returns:
            The values that could not be had, as a text for the event's ``problem``.
        """
        if frame is not None and self.has_stack:
            fields["stack_info"] = callsites.format_stack(frame)
        lazy, problems = self._lazy, []
        if callable(lazy):
            try:
                lazy = dict(lazy())
            except Exception as error:
                if strict:
                    raise
                lazy = {}
                problems.append(_reason("lazy", error))
        for name, make in (lazy or {}).items():
            text = safe_str(name)
            if text in fields:
                continue
            try:
                fields[text] = make() if callable(make) else make
            except Exception as error:
                if strict:
                    raise
                problems.append(_reason(f"lazy {text}", error))
        return "; ".join(problems)


def _reason(what: str, error: Exception) -> str:
    return f"{what} raised {type(error).__name__}: {safe_str(error)[:200]}"


def _parse_raw_event(value: Any) -> Event | None:
    """Return the event in an ``Event``, in its dict or in its JSON line; None for other values.

    The payload and the context of a dict stay as they are, with any values.
    """
    if isinstance(value, Event):
        return value
    with suppress(EventError, TypeError, ValueError, RecursionError):
        if isinstance(value, (str, bytes, bytearray)):
            return decode(value)
        if not isinstance(value, dict):
            return decode(msgspec.json.encode(value))
        payload, header = value.get("payload"), dict(value.get("header", ()))
        if isinstance(payload, NO_PAYLOAD):
            return None
        context = header.get("context", {})
        if not isinstance(context, dict):
            return None
        event = decode(msgspec.json.encode({**value, "payload": {}, "header": {**header, "context": {}}}))
        return event.with_values(payload, context=context)
    return None
