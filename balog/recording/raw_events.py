"""Events that a program made itself, for ``logger.info(raw_event=…)``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from balog.errors import EventError
from balog.event import Event, decode

NO_EVENT = "raw_event is no event; it is written as a payload"


def parse_raw_event(value: Any) -> Event | None:
    """Return the event in an ``Event``, in its dict or in its JSON line; None for other values."""
    if isinstance(value, Event):
        return value
    with suppress(EventError, TypeError, ValueError, RecursionError):
        return decode(value if isinstance(value, (str, bytes, bytearray)) else msgspec.json.encode(value))
    return None
