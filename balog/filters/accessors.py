"""Read the value of a name from an event or a row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import timezone
from typing import Any

import msgspec
from msgspec import UNSET

from balog.common.errors import EventError
from balog.event import Event

Get = Callable[[Any], Any]


def _level(event: Event) -> Any:
    level = event.header.level
    return None if level is UNSET else level


def _timestamp(event: Event) -> Any:
    time = event.header.timestamp
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


COLUMN_GETTERS: dict[str, Get] = {
    "id": lambda event: event.header.id,
    "channel": lambda event: event.header.channel,
    "timestamp": _timestamp,
    "level": _level,
    "schema": operator.attrgetter("schema"),
    "composition": lambda event: event.header.composition,
    "cls_type": operator.attrgetter("cls_type"),
}
"""By name: a function from an event to the value of a column."""


def path_getter(root: str, steps: tuple[str | int, ...]) -> Get:
    """Return a function that reads the value at a path from an event or a row; None without a value."""
    if root == "context":
        return _context(steps)
    if root == "payload":
        return _payload(steps)
    if len(steps) == 1:
        return lambda row: row.get(steps[0])
    return lambda row: _dig(row, steps)


def _payload(steps: tuple[str | int, ...]) -> Get:
    if len(steps) == 1:
        key: Any = steps[0]

        def get(event: Event) -> Any:
            try:
                return event.payload_view.get(key)
            except EventError:
                return None

        return get

    def dig(event: Event) -> Any:
        try:
            return _dig(event.payload_view, steps)
        except EventError:  # a payload that cannot be read has nothing in it
            return None

    return dig


def _context(steps: tuple[str | int, ...]) -> Get:
    if not steps:
        return lambda event: event.header.context
    key: Any = steps[0]

    def get(event: Event) -> Any:
        value = event.header.context.get(key)
        return value if value is None or value.__class__ is str else _text(value)

    return get


def _text(value: Any) -> str | None:
    """Return a value of a context as JSON text, as in the map of the Spark source."""
    try:
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def _dig(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if step.__class__ is str:
            if not isinstance(value, (dict, Mapping)):
                return None
            value = value.get(step)
        elif isinstance(value, (list, tuple)) and step < len(value):  # type: ignore[operator]
            value = value[step]  # type: ignore[index]
        else:
            return None
    return value
