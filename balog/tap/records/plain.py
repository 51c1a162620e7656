"""Conversion of Python values to JSON types, one level at a time, so that each level's schema is applied first."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import partial
from math import isfinite
from os import PathLike, fspath
from typing import Any
from uuid import UUID

import msgspec

from balog.tap.json_schema.mismatch import MismatchError, type_name

JSON_TYPES = frozenset({type(None), bool, int, float, Decimal, str, list, dict})
"""The result types of ``simplify``, without subclasses. A Decimal is a number with all its digits."""


def simplify(value: Any) -> Any:
    """Convert a value to one of ``JSON_TYPES``; the items of arrays and objects stay unchanged.

    Times become RFC 3339 in UTC (without a zone they count as UTC), durations ISO 8601, bytes base64, an Enum its
    value. Mappings, dataclasses, msgspec Structs, pydantic models, attrs classes and named tuples become objects;
    tuples, sets and generators become arrays.

    Raises:
        MismatchError: the type has no form in JSON.
    """
    kind = type(value)
    if kind in JSON_TYPES:
        return value
    known = _BY_TYPE.get(kind)
    if known is not None:
        return known(value)
    return _subclass(value)


def finite(value: Any) -> bool:
    """Return whether a number is finite, as JSON requires."""
    if type(value) is float:
        return isfinite(value)
    if type(value) is Decimal:  # JSON's readers turn 1e400 into infinity
        return value.is_finite() and isfinite(float(value))
    return True


class Unfit:
    """A value of the source that is not of its column's type: its record goes to the quarantine, with the value."""

    def __init__(self, value: Any, reason: str) -> None:
        self.value, self.reason = value, reason

    def __repr__(self) -> str:
        return f"Unfit({self.value!r})"


def decode_json(data: bytes, charset: str = "utf-8") -> Any:
    """Decode JSON of a source: numbers with a fraction or an exponent are ``Decimal``, with all their digits.

    A number that doubles do not have, such as NaN or 1e400, is ``Unfit``, so that only its record is lost.

    Args:
        data: the JSON. A byte order mark, or the zeros of UTF-16 and UTF-32, decide its encoding.
        charset: the declared encoding; if the data does not have it, UTF-8 is tried.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deep.
    """
    text = _text_of(data, charset)
    try:
        return _decode(text)
    except msgspec.DecodeError:  # also for NaN, integers of thousands of digits, and half of a surrogate pair
        return exact_json(text, partial(Unfit, reason=_BEYOND))


def _text_of(data: bytes, charset: str) -> str | bytes:
    """Return data in UTF-8, or as text."""
    encoding = json.detect_encoding(data)
    if encoding != "utf-8":
        return data[3:] if encoding == "utf-8-sig" else data.decode(encoding)
    try:
        return data if charset == "utf-8" or charset in _SLOW else data.decode(charset)
    except (LookupError, ValueError):
        return data


def exact_json(text: str | bytes, constant: Callable[[str], Any] = lambda name: None) -> Any:
    """Decode JSON as ``decode_json`` does; ``constant`` of NaN and infinity, which are null by default.

    Raises:
        ValueError: the text is not JSON.
    """
    return json.loads(text, parse_float=exact_number, parse_int=_integer, parse_constant=constant)


def exact_number(text: str) -> Decimal | Unfit:
    """Return the number of a JSON text with a fraction or an exponent."""
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of many digits
        return Unfit(text, _BEYOND)
    return number if number.adjusted() > _LEAST and isfinite(float(text)) else Unfit(text, _BEYOND)


def _integer(text: str) -> int | Unfit:
    return int(text) if len(text) <= _MAX_DIGITS else Unfit(text, _BEYOND)


_BEYOND = "is a number beyond those that 64 bits have"
_LEAST = -4000  # the exponent of a number whose zeros fill a text
_MAX_DIGITS = 4000
_SLOW = frozenset({"idna", "punycode"})  # codecs that are no charsets, in quadratic time
_decode = msgspec.json.Decoder(float_hook=exact_number).decode


def time_text(value: datetime) -> str:
    """Return a time as RFC 3339 in UTC."""
    if value.tzinfo is None:
        return value.isoformat() + "Z"
    try:
        return value.astimezone(timezone.utc).isoformat().removesuffix("+00:00") + "Z"
    except OverflowError:  # within a day of the year 1 or 9999
        return value.isoformat()


def _daytime(value: time) -> str:
    text = value.isoformat()
    return text if value.utcoffset() is not None else text + "Z"


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()


_BY_TYPE: dict[type, Callable[[Any], Any]] = {
    datetime: time_text,
    date: date.isoformat,
    time: _daytime,
    timedelta: msgspec.to_builtins,
    UUID: str,
    bytes: _base64,
    bytearray: _base64,
    memoryview: _base64,
    tuple: list,
    set: list,
    frozenset: list,
}


def _subclass(value: Any) -> Any:
    if isinstance(value, Unfit):
        raise MismatchError(value.reason)
    if isinstance(value, Enum):
        return simplify(value.value)
    for base, make in _BASES:
        if isinstance(value, base):
            return make(value)
    if (members := _members(value)) is not None:
        return members
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # numpy's scalars and arrays
        return simplify(value.tolist())
    raise MismatchError(f"{type_name(value)} has no form in JSON")


def _members(value: Any) -> dict[Any, Any] | None:
    """Return the fields of a Struct, dataclass or model by name; None for other values."""
    if isinstance(value, type):
        return None
    if isinstance(value, msgspec.Struct):
        return {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if callable(dump := getattr(value, "model_dump", None)):
        return dict(dump())
    if (attributes := getattr(type(value), "__attrs_attrs__", None)) is not None:
        return {attribute.name: getattr(value, attribute.name) for attribute in attributes}
    return None


def _sequence(value: Any) -> Any:
    return dict(value._asdict()) if hasattr(value, "_asdict") else list(value)


_BASES: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (Decimal, Decimal),
    (datetime, time_text),
    (date, date.isoformat),
    (time, _daytime),
    (timedelta, msgspec.to_builtins),
    (UUID, str),
    ((bytes, bytearray, memoryview), _base64),
    (Mapping, dict),
    (Sequence, _sequence),
    ((Set, Iterator), list),
    (PathLike, fspath),
)


def unwritable(error: Exception) -> str:
    """Return why a record cannot be encoded, without its values, which the error's own text can have."""
    if isinstance(error, UnicodeError):
        return "has half of a surrogate pair in a text, which UTF-8 can't write"
    if isinstance(error, RecursionError):
        return "is nested too deep"
    return "has a value that JSON can't write"
