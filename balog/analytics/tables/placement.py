"""Values into columns, one by one and exactly: for the payloads that do not fit ``typed_columns``'s fast way.

Of the columns of one field the first that can hold a value takes it:

- a number column takes a text that is a JSON number (facility 0.0.1 wrote numbers so), a whole-number column no
  fraction, ``double`` no whole number beyond 2^53, which it would round;
- a timestamp or date column, which only a registry's schema makes, takes RFC 3339 text of at most microseconds;
- a number that a double rounds (more than 17 digits, ``1e-400``) is in its ``double`` column as the nearest double,
  and once more, as it was written, in the rest;
- a list goes whole or not at all, an object in parts.

What holds nothing (null, ``{}``, ``[]``, and lists and objects of only those) needs no column.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
from pyspark.sql import types as t

from balog.analytics.reading.inexact_numbers import DOUBLE_DIGITS
from balog.analytics.tables.evolution import field_of

__all__ = [
    "EXACT",
    "TIMESTAMP",
    "WHOLE",
    "Inexact",
    "homes",
    "is_void",
    "number_of",
    "place",
    "raw_number",
    "read_number",
]

EXACT = 1 << 53
"""Whole numbers up to here are exact in a double."""

WHOLE: dict[type[t.DataType], int] = {t.ByteType: 7, t.ShortType: 15, t.IntegerType: 31, t.LongType: 63}
"""Bits of a whole number's type, without the sign."""

TIMESTAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)\Z"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_REFUSED = object()


class Inexact:
    """A number of JSON that a double can't hold as it was written.

    Attributes:
        text: the number as JSON.
        nearest: the nearest double, None where that is infinite or, for another number than zero, zero.
    """

    __slots__ = ("nearest", "text")

    def __init__(self, text: str, nearest: float | None) -> None:
        self.text, self.nearest = text, nearest


def read_number(text: str) -> float | Inexact:
    """Return the value of a JSON number with a fraction or an exponent."""
    value = float(text)
    digits = re.split("[eE]", text)[0].replace(".", "").strip("-0")
    if abs(value) == float("inf") or (digits and not value):
        return Inexact(text, None)
    return Inexact(text, value) if len(digits) > DOUBLE_DIGITS else value


def raw_number(value: Any) -> msgspec.Raw:
    """Return an ``Inexact`` as msgspec's encoder takes it.

    Raises:
        NotImplementedError: it is something else.
    """
    if not isinstance(value, Inexact):
        raise NotImplementedError
    return msgspec.Raw(value.text.encode())


def homes(struct: t.StructType, columns: list[t.StructField] | None = None) -> dict[str, list[t.StructField]]:
    """Give the columns of each field, in the order in which they are tried."""
    found: dict[str, list[t.StructField]] = {}
    for column in struct.fields if columns is None else columns:
        found.setdefault(field_of(column), []).append(column)
    return found


def is_void(value: Any) -> bool:
    """Tell whether a value holds nothing."""
    if isinstance(value, dict):
        return all(map(is_void, value.values()))
    if isinstance(value, list):
        return all(map(is_void, value))
    return value is None


def place(value: dict[str, Any], columns: dict[str, list[t.StructField]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Share an object out: what its columns take, by their names, and the rest, by the fields' names."""
    taken: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for field, item in value.items():
        if item is None:
            continue
        for column in columns.get(field, ()):
            stored = _fit(item, column.dataType)
            if stored is not _REFUSED:
                taken[column.name] = stored
                if _is_inexact(item):
                    rest[field] = item
                break
        else:
            if is_void(item):
                continue
            rest[field] = item
            for column in columns.get(field, ()) if isinstance(item, dict) else ():
                if isinstance(column.dataType, t.StructType):
                    taken[column.name], rest[field] = place(item, homes(column.dataType))
                    break
    return taken, rest


def _fit(value: Any, kind: t.DataType) -> Any:
    """Give a value as Arrow wants it for a column, or ``_REFUSED``."""
    if value is None:
        return None
    if isinstance(kind, t.StructType):
        if not isinstance(value, dict):
            return _REFUSED
        taken, rest = place(value, homes(kind))
        return _REFUSED if rest else taken
    if isinstance(kind, t.ArrayType):
        if not isinstance(value, list):
            return _REFUSED
        items = [_fit(item, kind.elementType) for item in value]
        return _REFUSED if any(item is _REFUSED for item in items) else items
    if isinstance(value, str):
        return _text(value, kind)
    if isinstance(value, bool):
        return value if isinstance(kind, t.BooleanType) else _REFUSED
    if isinstance(value, Inexact):
        return _REFUSED if value.nearest is None else _number(value.nearest, kind)
    return _number(value, kind) if isinstance(value, (int, float)) else _REFUSED


def _is_inexact(value: Any) -> bool:
    return any(map(_is_inexact, value)) if isinstance(value, list) else isinstance(value, Inexact)


def _text(value: str, kind: t.DataType) -> Any:
    if isinstance(kind, t.StringType):
        return value
    if isinstance(kind, (t.TimestampType, t.DateType)):
        pattern, python = (TIMESTAMP, datetime) if isinstance(kind, t.TimestampType) else (r"^\d{4}-\d\d-\d\d\Z", date)
        try:
            return msgspec.convert(value, python) if re.match(pattern, value) else _REFUSED
        except msgspec.ValidationError:
            return _REFUSED
    number = number_of(value)
    return _REFUSED if number is None else _number(number, kind)


def number_of(text: str) -> int | float | None:
    """Give the number that a text is in JSON, or None when it is no number or a double would round it."""
    if len(text) > 40 or _NUMBER.fullmatch(text) is None:
        return None
    if not set(text) & set(".eE"):
        return int(text)
    number = read_number(text)
    return number if isinstance(number, float) else None


def _number(value: int | float, kind: t.DataType) -> Any:
    if isinstance(value, float):
        return value if isinstance(kind, t.DoubleType) and abs(value) != float("inf") else _REFUSED
    if type(kind) in WHOLE:
        return value if -(1 << WHOLE[type(kind)]) <= value < 1 << WHOLE[type(kind)] else _REFUSED
    if isinstance(kind, t.DoubleType):
        return float(value) if abs(value) <= EXACT else _REFUSED
    if isinstance(kind, t.DecimalType) and kind.scale == 0:
        return Decimal(value) if abs(value) < 10**kind.precision else _REFUSED
    return _REFUSED
