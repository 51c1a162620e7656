"""Assigns values to columns one by one, for payloads that ``column_conversion`` can't decode directly.

A field may have several columns. The first one that can hold the value takes it:

- A number column takes a text that is a JSON number (facility 0.0.1 wrote numbers so). A whole-number column takes no
  fraction, and ``double`` no whole number beyond 2^53, which it would round.
- A timestamp or date column, which only a registry's schema creates, takes RFC 3339 text with at most microseconds.
- A number that a double would round (more than 17 digits, ``1e-400``) is stored twice: the nearest double in its
  ``double`` column, and the original text in the rest.
- A list is taken completely or not at all, an object in parts.

Empty values (null, ``{}``, ``[]``, and lists and objects of only those) need no column.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
from pyspark.sql import types as t

from balog.analytics.reading.parser import DOUBLE_DIGITS
from balog.analytics.tables.table_schema import field_of

EXACT = 1 << 53
"""Whole numbers up to this one are exact in a double."""

WHOLE: dict[type[t.DataType], int] = {t.ByteType: 7, t.ShortType: 15, t.IntegerType: 31, t.LongType: 63}
"""Bits of a whole number's type, without the sign."""

TIMESTAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)\Z"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_REJECTED = object()


class Inexact:
    """A JSON number that a double can't represent exactly.

    Attributes:
        text: the number as JSON.
        nearest: the nearest double; None if that is infinite, or zero for a number other than zero.
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
    """Return an ``Inexact`` in the form that msgspec encodes.

    Raises:
        NotImplementedError: the value is of another type.
    """
    if not isinstance(value, Inexact):
        raise NotImplementedError
    return msgspec.Raw(value.text.encode())


def columns_by_field(
    struct: t.StructType, columns: list[t.StructField] | None = None
) -> dict[str, list[t.StructField]]:
    """Return the columns of each field, in the order of precedence."""
    by_field: dict[str, list[t.StructField]] = {}
    for column in struct.fields if columns is None else columns:
        by_field.setdefault(field_of(column), []).append(column)
    return by_field


def is_empty(value: Any) -> bool:
    """Return whether a value is empty."""
    if isinstance(value, dict):
        return all(map(is_empty, value.values()))
    if isinstance(value, list):
        return all(map(is_empty, value))
    return value is None


def assign_values(
    value: dict[str, Any], columns: dict[str, list[t.StructField]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split an object: the values for its columns, by column name, and the rest, by field name."""
    taken: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for field, item in value.items():
        if item is None:
            continue
        for column in columns.get(field, ()):
            stored = _to_column(item, column.dataType)
            if stored is not _REJECTED:
                taken[column.name] = stored
                if _is_inexact(item):
                    rest[field] = item
                break
        else:
            if is_empty(item):
                continue
            rest[field] = item
            for column in columns.get(field, ()) if isinstance(item, dict) else ():
                if isinstance(column.dataType, t.StructType):
                    taken[column.name], rest[field] = assign_values(item, columns_by_field(column.dataType))
                    break
    return taken, rest


def _to_column(value: Any, kind: t.DataType) -> Any:
    """Return a value as Arrow needs it for a column, or ``_REJECTED``."""
    if value is None:
        return None
    if isinstance(kind, t.StructType):
        if not isinstance(value, dict):
            return _REJECTED
        taken, rest = assign_values(value, columns_by_field(kind))
        return _REJECTED if rest else taken
    if isinstance(kind, t.ArrayType):
        if not isinstance(value, list):
            return _REJECTED
        items = [_to_column(item, kind.elementType) for item in value]
        return _REJECTED if any(item is _REJECTED for item in items) else items
    if isinstance(value, str):
        return _text(value, kind)
    if isinstance(value, bool):
        return value if isinstance(kind, t.BooleanType) else _REJECTED
    if isinstance(value, Inexact):
        return _REJECTED if value.nearest is None else _number(value.nearest, kind)
    return _number(value, kind) if isinstance(value, (int, float)) else _REJECTED


def _is_inexact(value: Any) -> bool:
    return any(map(_is_inexact, value)) if isinstance(value, list) else isinstance(value, Inexact)


def _text(value: str, kind: t.DataType) -> Any:
    if isinstance(kind, t.StringType):
        return value
    if isinstance(kind, (t.TimestampType, t.DateType)):
        pattern, python = (TIMESTAMP, datetime) if isinstance(kind, t.TimestampType) else (r"^\d{4}-\d\d-\d\d\Z", date)
        try:
            return msgspec.convert(value, python) if re.match(pattern, value) else _REJECTED
        except msgspec.ValidationError:
            return _REJECTED
    number = number_of(value)
    return _REJECTED if number is None else _number(number, kind)


def number_of(text: str) -> int | float | None:
    """Return the number in a text, or None if it is not a JSON number or a double would round it."""
    if len(text) > 40 or _NUMBER.fullmatch(text) is None:
        return None
    if not set(text) & set(".eE"):
        return int(text)
    number = read_number(text)
    return number if isinstance(number, float) else None


def _number(value: int | float, kind: t.DataType) -> Any:
    if isinstance(value, float):
        return value if isinstance(kind, t.DoubleType) and abs(value) != float("inf") else _REJECTED
    if type(kind) in WHOLE:
        return value if -(1 << WHOLE[type(kind)]) <= value < 1 << WHOLE[type(kind)] else _REJECTED
    if isinstance(kind, t.DoubleType):
        return float(value) if abs(value) <= EXACT else _REJECTED
    if isinstance(kind, t.DecimalType) and kind.scale == 0:
        return Decimal(value) if abs(value) < 10**kind.precision else _REJECTED
    return _REJECTED
