"""The order of replication values, from the schema of the replication key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Literal

from balog.tap.bookmarks import times
from balog.tap.json_schema.keywords import types_of

Kind = Literal["time", "number", "text", "any"]
"""``any`` is for a schema without a type: numbers or texts, but never both; texts that are times are instants."""

_WANTED = {"time": "a time", "number": "a number", "text": "a text", "any": "a number or a text"}


class Order:
    """Compares replication values of one kind.

    ``date-time`` and ``date`` are compared as instants, ``integer`` and ``number`` as numbers, everything else as text
    by code points.

    Args:
        kind: the kind.
        is_date: times are days.
    """

    def __init__(self, kind: Kind, *, is_date: bool = False) -> None:
        self.kind: Kind = kind
        self.is_date = is_date

    def rank(self, value: Any) -> Any:
        """Return a value that can be compared with other ranks of this order.

        Raises:
            ValueError: the value is not of this kind. The message does not contain the value.
        """
        value = plain(value)
        if self.kind in ("time", "any") and isinstance(value, str):
            try:
                return times.rank(value)
            except ValueError:
                if self.kind == "time":
                    raise ValueError("expected a time in RFC 3339 format") from None
        if self.kind in ("number", "any") and is_number(value):
            return value
        if self.kind == "number" and isinstance(value, str):  # as some taps keep numbers in their state
            with suppress(ArithmeticError):
                number = Decimal(value)
                if number.is_finite():
                    return number
        if self.kind in ("text", "any") and isinstance(value, str):
            return value
        actual = "NaN or infinity" if isinstance(value, (float, Decimal)) else type(value).__name__
        raise ValueError(f"expected {_WANTED[self.kind]}, not {actual}")

    def is_before(self, value: Any, other: Any) -> bool:
        """Return whether one value is smaller than the other.

        Raises:
            ValueError: one is not of this kind, or one is a number and the other a text.
        """
        try:
            return bool(self.rank(value) < self.rank(other))
        except TypeError:
            raise ValueError("numbers and texts cannot be compared") from None

    def latest(self, *values: Any) -> Any:
        """Return the largest value as JSON, the first of equal ones; None if all are None.

        Raises:
            ValueError: as in ``is_before``.
        """
        latest = None
        for value in values:
            if value is not None and (latest is None or self.is_before(latest, value)):
                latest = plain(value)
        return latest

    def back(self, value: Any, lookback: float) -> Any:
        """Return a value moved back: by seconds, rounded up, for times; by the number for numbers.

        Raises:
            ValueError: the value is not of this kind, or it is a text.
        """
        if not lookback:
            return value
        self.rank(value)
        value = plain(value)
        if is_number(value):
            return value - (Decimal(str(lookback)) if isinstance(value, Decimal) else lookback)
        if self.kind in ("time", "any"):
            return times.earlier(value, math.ceil(lookback))
        raise ValueError("a lookback needs times or numbers")

    def first(self, start_date: str | None) -> str | None:
        """Return the config's ``start_date`` in the format of a time: RFC 3339 in UTC, or its day in UTC.

        It does not apply to numbers, and is unchanged for texts, whose format is unknown.

        Raises:
            ValueError: it is not a time.
        """
        if start_date is None or self.kind != "time":
            return None if self.kind == "number" else start_date
        text = times.earlier(start_date, 0)
        if self.is_date:
            return text[:10]
        return f"{text.removesuffix('Z')}Z" if "T" in text else f"{text}T00:00:00Z"


def is_number(value: Any) -> bool:
    """Return whether a value is a number that can be compared: not a boolean, NaN or infinity."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, (float, Decimal)) and math.isfinite(value))


def plain(value: Any) -> Any:
    """Return a value as JSON: times and dates as text (no zone means UTC), others unchanged."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return aware.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return value


def order_of(schema: Mapping[str, Any] | None, key: str) -> Order:
    """Return the order of a schema's property, whose type may be inside ``anyOf``, ``oneOf`` and ``allOf``."""
    property_schema = ((schema or {}).get("properties") or {}).get(key)
    nodes = list(_nodes(property_schema))
    formats = {node.get("format") for node in nodes} & {"date-time", "date"}
    if formats:
        return Order("time", is_date=formats == {"date"})
    types = {name for node in nodes for name in types_of(node)} - {"null"}
    if types and types <= {"integer", "number"}:
        return Order("number")
    return Order("text" if types == {"string"} else "any")


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        for keyword in ("anyOf", "oneOf", "allOf"):
            for part in schema.get(keyword) or ():
                yield from _nodes(part)
