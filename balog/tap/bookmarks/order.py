"""The order of replication values, as the schema of the replication key says it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Literal

from balog.tap.bookmarks import times

__all__ = ["Kind", "Order", "is_number", "order_of", "plain"]

Kind = Literal["time", "number", "text", "any"]
"""``any`` is of a schema that does not say: numbers and texts as they come, but never both."""

_WANTED = {"time": "a time", "number": "a number", "text": "a text", "any": "a number or a text"}


class Order:
    """Compares replication values of one kind.

    ``date-time`` and ``date`` are compared as instants, ``integer`` and ``number`` as numbers, all else as texts by
    their code points.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind: Kind = kind

    def rank(self, value: Any) -> Any:
        """Give what is compared in the place of a value: ranks of one order have an order among themselves.

        Raises:
            ValueError: the value is not of this kind; the message says what was wanted, and not the value.
        """
        value = plain(value)
        if self.kind == "time" and isinstance(value, str):
            try:
                return times.rank(value)
            except ValueError:
                raise ValueError("want a time as RFC 3339 has it") from None
        if self.kind in ("number", "any") and is_number(value):
            return value
        if self.kind == "number" and isinstance(value, str):  # as some taps keep numbers in their state
            with suppress(ArithmeticError):
                number = Decimal(value)
                if number.is_finite():
                    return number
        if self.kind in ("text", "any") and isinstance(value, str):
            return value
        what = "a number that is none" if isinstance(value, (float, Decimal)) else type(value).__name__
        raise ValueError(f"want {_WANTED[self.kind]}, not {what}")

    def is_before(self, one: Any, other: Any) -> bool:
        """Tell whether one value is smaller than the other.

        Raises:
            ValueError: one is not of this kind, or they are of two.
        """
        try:
            return bool(self.rank(one) < self.rank(other))
        except TypeError:
            raise ValueError("numbers and texts have no order among themselves") from None

    def latest(self, *values: Any) -> Any:
        """Give the largest of the values that are not None, the first of equal ones, as JSON has it; None of none.

        Raises:
            ValueError: as in ``is_before``.
        """
        latest = None
        for value in values:
            if value is not None and (latest is None or self.is_before(latest, value)):
                latest = plain(value)
        return latest

    def back(self, value: Any, lookback: float) -> Any:
        """Give a value moved back: seconds, rounded up to whole ones, for times; the number itself for numbers.

        Raises:
            ValueError: the value is not of this kind, or a text that cannot be moved.
        """
        if not lookback:
            return value
        self.rank(value)
        value = plain(value)
        if self.kind == "time":
            return times.earlier(value, math.ceil(lookback))
        if is_number(value):
            return value - (Decimal(str(lookback)) if isinstance(value, Decimal) else lookback)
        raise ValueError("a lookback is for times and numbers")


def is_number(value: Any) -> bool:
    """Tell whether it is a number that has a place in the order: no boolean, no NaN, not infinite."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, (float, Decimal)) and math.isfinite(value))


def plain(value: Any) -> Any:
    """Give a value as JSON has it: times and dates as texts (no zone is UTC), others as they are."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return aware.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return value


def order_of(schema: Mapping[str, Any] | None, key: str) -> Order:
    """Give the order of a property of a schema, which may say it in ``anyOf``, ``oneOf`` and ``allOf`` too."""
    said = ((schema or {}).get("properties") or {}).get(key)
    nodes = list(_nodes(said))
    if any(node.get("format") in ("date-time", "date") for node in nodes):
        return Order("time")
    types = {name for node in nodes for name in _types(node)} - {"null"}
    if types and types <= {"integer", "number"}:
        return Order("number")
    return Order("text" if types == {"string"} else "any")


def _nodes(said: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(said, Mapping):
        yield said
        for word in ("anyOf", "oneOf", "allOf"):
            for below in said.get(word) or ():
                yield from _nodes(below)


def _types(node: Mapping[str, Any]) -> list[str]:
    found = node.get("type") or []
    return [found] if isinstance(found, str) else list(found)
