"""Coercion of values to other JSON types without loss."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from balog.tap.json_schema.checks import finite

NOTHING: Any = object()
"""The result of a coercion that would lose something."""

_number = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?\s*", re.ASCII).fullmatch
_integer = re.compile(r"\s*[+-]?\d+\s*", re.ASCII).fullmatch
_MAX_DIGITS = 4000
_encode = msgspec.json.Encoder(decimal_format="number").encode
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def _to_number(value: Any) -> Any:
    """Convert a string to a number with all its digits, to an integer if it has no fraction."""
    if type(value) is not str or len(value) > _MAX_DIGITS or not _number(value):
        return NOTHING
    if _integer(value):
        return int(value)
    try:
        return Decimal(value.strip())
    except InvalidOperation:
        return NOTHING


def _to_integer(value: Any) -> Any:
    """Convert a number without a fraction to an integer: ``"12"``, ``12.0``, ``"12.00"``."""
    made = value if type(value) in (float, Decimal) else _to_number(value)
    if made is NOTHING or type(made) is int:
        return made
    if not finite(made):
        return NOTHING
    if type(made) is Decimal and made.adjusted() > _MAX_DIGITS:
        return NOTHING
    return int(made) if made == int(made) else NOTHING


def _to_boolean(value: Any) -> Any:
    """Convert the strings true and false, 1 and 0 to booleans; other words are ambiguous."""
    if type(value) is str:
        return _TRUTHS.get(value.strip().lower(), NOTHING)
    return bool(value) if type(value) is int and value in (0, 1) else NOTHING


def _to_string(value: Any) -> Any:
    """Convert a value to its JSON text. Arrays and objects have only JSON types inside."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        try:
            return str(value)
        except ValueError:  # thousands of digits
            return NOTHING
    if kind is float or kind is Decimal:
        return (format(value, "f") if kind is Decimal else repr(value)) if finite(value) else NOTHING
    if kind is dict or kind is list:
        try:
            return _encode(value).decode()
        except (TypeError, ValueError, RecursionError):
            return NOTHING
    return NOTHING


def _to_null(value: Any) -> Any:
    """Convert the empty string, and numbers that are not finite, to null."""
    return None if value == "" or (type(value) in (float, Decimal) and not finite(value)) else NOTHING


TO: dict[str, Callable[[Any], Any]] = {
    "number": _to_number,
    "integer": _to_integer,
    "boolean": _to_boolean,
    "string": _to_string,
    "null": _to_null,
}
"""By target type: returns the value or ``NOTHING``. No value is coerced to an array or an object."""
