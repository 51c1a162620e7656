"""Compares rows of a payload type's table with their payloads.

This module shares no code with the modules that fill the columns (``column_conversion``, ``placement``), so a bug in
those does not hide itself here. It reads payloads with Python's own ``json``, and numbers as exact decimals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

from pyspark.sql import types as t

_RECOVERED = "payload_recovered"
_FACILITY = ("id", "timestamp", "channel", "level", "run_id", "application", _RECOVERED)
NEW = 200
EVERY = 10_000
_DOUBLE_DIGITS = 17
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)")
_UNREADABLE = object()
_LARGEST = 10**308  # certainly a double
_LONGEST_INT = 4000  # digits; Python does not convert longer ones to an int


def rows_to_compare(seen: int, count: int, *, is_new: bool) -> list[int]:
    """Return the indices of the rows to compare: the first ``NEW`` of changed columns, and one in ``EVERY``.

    Args:
        seen: rows of the same table that this worker had before these.
        count: the number of these rows.
        is_new: the batch changes the table's columns.
    """
    first = min(max(NEW - seen, 0), count) if is_new else 0
    return [*range(first), *range(first + -(seen + first) % EVERY, count, EVERY)]


def difference(schema: t.StructType, cls_type: str, row: Mapping[str, Any], payload: str) -> str | None:
    """Return the path of the first field whose value differs, or None.

    Args:
        schema: the table's columns.
        cls_type: the payload type, which is the table's name and needs no column.
        row: the values of the columns, as Arrow converts them to Python.
        payload: the payload's JSON text.
    """
    document = _read(payload)
    kept = row[_RECOVERED]
    if document is _UNREADABLE:
        return None if kept in (None, payload) else _RECOVERED
    rest = {} if kept is None else _read(kept)
    columns = [column for column in schema if "field" in column.metadata or column.name not in _FACILITY]
    if not isinstance(rest, dict):
        return None if rest == document else _RECOVERED
    if not isinstance(document, dict):
        return _RECOVERED
    named = [column.name for column in columns if column.metadata.get("field", column.name) == "cls_type"]
    if document.get("cls_type") == cls_type and "cls_type" not in rest and all(row[name] is None for name in named):
        document = {name: value for name, value in document.items() if name != "cls_type"}
    return _object(document, [(row, columns), (rest, None)], "")


class _NotJsonError(ValueError):
    pass


def _refuse(text: str) -> Any:
    raise _NotJsonError(text)


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) < _LONGEST_INT else Decimal(text)


def _number(text: str) -> Any:
    try:
        return Decimal(text)
    except InvalidOperation:  # the exponent is beyond Python's decimals
        return _Digits(text)


class _Digits(str):
    """A number without a Python type: equal only if the text is equal."""

    __slots__ = ()


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_int=_whole, parse_float=_number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _UNREADABLE


_Part = tuple[Any, Any]
"""A part of a value and its column's type, None for JSON."""


def _object(document: dict[str, Any], parts: list[tuple[Mapping[str, Any], Any]], path: str) -> str | None:
    """Compare an object with its parts in columns and in the rest."""
    values_by_field: dict[str, list[_Part]] = {}
    for values, columns in parts:
        for field, value, kind in _fields(values, columns):
            if value is not None:
                values_by_field.setdefault(field, []).append((value, kind))
    for field in (*document, *(field for field in values_by_field if field not in document)):
        wrong = _value(document.get(field), values_by_field.get(field, []), f"{path}{field}")
        if wrong is not None:
            return wrong
    return None


def _fields(values: Mapping[str, Any], columns: Any) -> Iterator[tuple[str, Any, Any]]:
    if columns is None:
        yield from ((field, value, None) for field, value in values.items())
    else:
        for column in columns:
            yield column.metadata.get("field", column.name), values[column.name], column.dataType


def _value(value: Any, parts: list[_Part], path: str) -> str | None:
    """Return None if the parts together equal the value, otherwise the path of the difference."""
    if not parts or _holds_nothing(value):
        missing = not parts and not _holds_nothing(value)
        stray = any(not _holds_nothing(part) for part, _ in parts)
        return path if missing or stray else None
    if isinstance(value, dict):
        if not all(isinstance(part, Mapping) for part, _ in parts):
            return path
        return _object(value, [(part, None if kind is None else kind.fields) for part, kind in parts], f"{path}.")
    if isinstance(value, list):
        if not all(isinstance(part, list) and len(part) == len(value) for part, _ in parts):
            return path
        for number, item in enumerate(value):
            inner = [(part[number], None if kind is None else kind.elementType) for part, kind in parts]
            wrong = _value(item, [part for part in inner if part[0] is not None], f"{path}[{number}]")
            if wrong is not None:
                return wrong
        return None
    close = [_likeness(value, part, kind) for part, kind in parts]
    return None if all(close) and _EXACT in close else path


_EXACT, _NEAREST = 2, 1


def _likeness(value: Any, part: Any, kind: Any) -> int:
    """Return ``_EXACT`` if a part equals the value, ``_NEAREST`` if it is the nearest double, otherwise 0."""
    if isinstance(value, bool) or isinstance(part, bool):
        return _EXACT if value is part else 0
    if isinstance(value, str) and not isinstance(value, _Digits):
        return _EXACT if _is_text(value, part, kind) else 0
    if not isinstance(value, (int, Decimal)):
        return _EXACT if type(part) is type(value) and part == value else 0
    if not isinstance(part, (int, float, Decimal)):
        return 0
    if part == value:
        return _EXACT
    if isinstance(part, int) or (isinstance(value, int) and abs(value) > _LARGEST) or float(part) != float(value):
        return 0
    return _EXACT if _is_double(value) else _NEAREST if isinstance(part, float) else 0


def _is_double(value: int | Decimal) -> bool:
    """Return whether a program may have written a number from a double: a fraction of at most 17 digits."""
    if isinstance(value, int) or float(value) in (0.0, float("inf"), float("-inf")):
        return False
    digits = value.as_tuple().digits
    return len(digits) <= _DOUBLE_DIGITS or len("".join(map(str, digits)).strip("0")) <= _DOUBLE_DIGITS


def _is_text(value: str, part: Any, kind: Any) -> bool:
    if kind is None or isinstance(part, str):
        return bool(value == part)
    try:
        if isinstance(part, datetime):
            match = _TIME.fullmatch(value)
            if match is None:
                return False
            zone = "+00:00" if match[3] == "Z" else match[3]
            moment = datetime.fromisoformat(f"{match[1]}.{match[2] or '':0<6}{zone}")
            return moment == (part if part.tzinfo else part.replace(tzinfo=timezone.utc))
        if isinstance(part, date):
            return part == date.fromisoformat(value)
    except (ValueError, OverflowError):
        return False
    number = _read(value)  # a text with a JSON number, in a number column
    is_number = isinstance(number, (int, Decimal)) and not isinstance(number, bool)
    return is_number and value == value.strip() and _likeness(number, part, kind) == _EXACT


def _holds_nothing(value: Any) -> bool:
    """Return whether a value needs no column: null, empty objects and lists, and objects and lists of only those."""
    if isinstance(value, Mapping):
        return all(map(_holds_nothing, value.values()))
    if isinstance(value, list):
        return all(map(_holds_nothing, value))
    return value is None
