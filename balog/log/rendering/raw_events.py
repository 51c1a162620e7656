"""Events that a program made itself, for ``logger.info(raw_event=…)``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from balog.common.errors import EventError
from balog.event import Event, decode
from balog.log.rendering.call_options import NO_PAYLOAD

NO_EVENT = "raw_event is no event; it is written as a payload"


def parse_raw_event(value: Any) -> Event | None:
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
        event.payload, event.header.context = payload, context
        return event
    return None
