"""Conversions of values that JSON has no form for to values that it has.

A type is recognized by its package and its name, because its library may be absent, and an import of it slow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, MappingView, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from balog.log.values.containers import is_container_type
from balog.log.values.exceptions import describe
from balog.log.values.json_values import SAME_KEYS
from balog.log.values.numeric_values import (
    duration_of_numpy,
    item_of_numpy,
    rows_of,
    time_of_numpy,
    timedelta_text,
    unique_names,
)

MAX_ITEMS = 1000
"""Number of items of a lazy or possibly huge sequence (a generator, a range, an array, a frame) that are written."""

MAX_MEMBERS = 10_000
"""Number of members of a mapping that is not a dict, and of its views, that are written."""

JSON_LEAVES: frozenset[type] = frozenset(
    {str, int, float, bool, type(None), datetime, date, time, timedelta, Decimal, UUID}
)
"""Types that msgspec writes, and whose encoding shows all their text."""

TIMES: frozenset[type] = frozenset({datetime, time})
"""Types of which a value may have an offset that msgspec does not write."""

LEAVES = (JSON_LEAVES | {bytes, bytearray}) - TIMES
"""Types that msgspec writes as a text or a number."""

Convert = Callable[[Any], Any]
_MAX_TYPES = 2048
_MAX_PROBLEMS = 20


class PartialValue(NamedTuple):
    """A list or a dict that lacks something of the value that it was made of.

    Attributes:
        problem: the difference, for the event's ``problem``.
    """

    value: Any
    problem: str


class ConversionError(TypeError):
    """A value has no JSON form."""


_known: dict[type, Convert | None] = {}


def find_conversion(kind: type) -> Convert | None:
    """Return the conversion of a type's values; None for a leaf, for a container and without one."""
    try:
        return _known[kind]
    except KeyError:
        conversion = None if kind in LEAVES or kind in TIMES else _built_in(kind)
        if len(_known) >= _MAX_TYPES:
            _known.clear()
        _known[kind] = conversion
        return conversion


def _built_in(kind: type) -> Convert | None:
    if kind in _CONTAINERS:
        return None
    for base in kind.__mro__:
        conversion = _BY_NAME.get((base.__module__.partition(".")[0], base.__name__))
        if conversion is not None:
            return conversion
        if base in _BASES:
            return _BASES[base]
    if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
        return _members_of_named_tuple
    if is_container_type(kind):
        return None
    for member, convert in _BY_MEMBER.items():
        if hasattr(kind, member):
            return convert
    return next((convert for base, convert in _ABSTRACT.items() if issubclass(kind, base)), None)


def _members_of_named_tuple(value: Any) -> Any:
    items = tuple.__getitem__(value, slice(None))
    names = type(value)._fields
    return dict(zip(names, items, strict=True)) if len(names) == len(items) else list(items)


def _members_of_model(value: Any) -> Any:
    """Return a pydantic model's members; as Python values if one has no JSON form.

    Pydantic's warnings are off: they would go to stderr, with values of the fields.
    """
    if not hasattr(type(value), "model_dump"):  # pydantic 1
        return value.dict()
    for options in _DUMPS:
        with suppress(Exception):
            return value.model_dump(**options)
    return _readable_members_of_model(value) if hasattr(type(value), "model_fields") else value.model_dump()


_DUMPS: tuple[dict[str, Any], ...] = ({"mode": "json", "warnings": False}, {"warnings": False})


def _readable_members_of_model(value: Any) -> PartialValue:
    """Return a model's members one by one, because a serializer raises."""
    kind, members, problems = type(value), {}, []
    for name in (*kind.model_fields, *kind.model_computed_fields):
        for options in _DUMPS:
            try:
                members.update(value.model_dump(include={name}, **options))
                break
            except Exception as error:
                failure = type(error).__name__
        else:
            members[name] = f"<{failure}>"
            problems.append(f"{name} raised {failure}")
    return PartialValue(members, "; ".join(problems[:_MAX_PROBLEMS]))


def _members_of_event(value: Any) -> Any:
    """Return the members of a balog event with the values of its payload, which may have changed."""
    header = {**value.header, **value.unknown.get("header", {})}
    return {**value, "header": header, "payload": value.payload_view, **value.unknown.get("", {})}


def _text_of_time(value: Any) -> str:
    exact = exact_time(value)
    text = exact if isinstance(exact, str) else exact.isoformat()
    if type(text) is not str:
        raise ConversionError(f"{type(value).__name__} has no JSON form")
    return text


def has_exact_offset(value: Any) -> bool:
    """Return whether a ``datetime`` or ``time`` has no offset, or one in whole minutes, as msgspec writes it."""
    zone = value.tzinfo
    if zone is None or zone is timezone.utc:
        return True
    offset = value.utcoffset()
    return offset is None or not offset % _MINUTE


def exact_time(value: Any) -> Any:
    """Return a ``datetime`` or ``time`` that msgspec writes without a loss; one with an offset in seconds in UTC."""
    if has_exact_offset(value):
        return value
    try:
        return value.astimezone(timezone.utc)
    except (AttributeError, OverflowError):  # a time without a date, or of the year 1 or 9999
        return value.isoformat()


_MINUTE = timedelta(minutes=1)


def _text_of_pattern(value: Any) -> Any:
    text = value.pattern
    return text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text


def _text_of_timedelta(value: Any) -> str:
    nanoseconds = getattr(value, "nanoseconds", 0)
    days, seconds = int(value.days), int(value.seconds)
    return timedelta_text(
        ((days * 86400 + seconds) * 10**6 + int(value.microseconds)) * 1000
        + (nanoseconds if type(nanoseconds) is int else 0)
    )


def _scalar_of_arrow(value: Any) -> Any:
    try:
        return value.as_py()
    except Exception:  # nanoseconds without pandas, a year after 9999
        text = str(value.cast("string").as_py())
        return PartialValue(text, f"{type(value).__name__} is out of range") if "out of range" in text else text


def _attributes(value: Any) -> Any:
    return dict(vars(value))


def _first_items(value: Iterable[Any], limit: int = MAX_ITEMS) -> Any:
    items: list[Any] = []
    try:
        for item in value:
            if len(items) == limit:
                return PartialValue(items, "all further items left out")
            items.append(item)
    except Exception as error:
        return PartialValue(items, f"{type(value).__name__} raised {type(error).__name__} after {len(items)} items")
    return items


def _first_members(value: Mapping[Any, Any]) -> Any:
    """Return the members of a mapping whose methods are of its own: they may raise, or never end."""
    members: dict[Any, Any] = {}
    problem = ""
    try:
        for number, key in enumerate(value):
            if number == MAX_MEMBERS:
                return PartialValue(members, "all further members left out")
            try:
                members[key] = value[key]
            except Exception as error:
                members[key] = f"<{type(error).__name__}>"
                problem = problem or f"a member of {type(value).__name__} raised {type(error).__name__}"
    except Exception as error:
        if not members:
            raise
        problem = f"{type(value).__name__} raised {type(error).__name__} after {len(members)} members"
    return PartialValue(members, problem) if problem else members


def _members_of_row(value: Any) -> Any:
    names = list(value._fields)
    unique = unique_names(names)
    members = dict(zip(unique, tuple(value), strict=True))
    return members if unique == names else PartialValue(members, SAME_KEYS)


def _first_of_sequence(value: Sequence[Any]) -> Any:
    total = len(value)
    return list(value) if total <= MAX_ITEMS else _cut(list(islice(value, MAX_ITEMS)), total)


def _cut(items: list[Any], total: int) -> PartialValue:
    return PartialValue(items, f"{total - len(items)} of {total} items left out")


def _rows(value: Any) -> Any:
    if getattr(value, "ndim", 1) == 0:
        return value[()]
    rows, total, has_same_names = rows_of(value, MAX_ITEMS)
    kept_rows = rows if len(rows) == total else _cut(rows, total)
    if not has_same_names:
        return kept_rows
    problem = f"{kept_rows.problem}; {SAME_KEYS}" if isinstance(kept_rows, PartialValue) else SAME_KEYS
    return PartialValue(rows, problem)


def _nothing(value: Any) -> None:
    return None


_CONTAINERS = frozenset({dict, list, tuple, set, frozenset, msgspec.Raw})

_BASES: dict[type, Convert] = {
    str: str.__str__,
    float: float.__float__,
    int: int.__int__,
    bytes: lambda value: bytes(memoryview(value)),
    bytearray: lambda value: bytes(memoryview(value)),
    datetime: _text_of_time,
    date: lambda value: date(value.year, value.month, value.day),
    time: _text_of_time,
    timedelta: _text_of_timedelta,
    Decimal: Decimal,
    memoryview: bytes,
    range: _first_of_sequence,
    BaseException: lambda value: describe(value)["exception"],
}
"""Built-in types, and the conversion of their subclasses: the value of the class, without methods of the subclass."""

_BY_NAME: dict[tuple[str, str], Convert] = {
    **dict.fromkeys([("ipaddress", f"IPv{v}{what}") for v in (4, 6) for what in ("Address", "Network")], str),
    **dict.fromkeys(
        [("pathlib", "PurePath"), ("uuid", "UUID"), ("fractions", "Fraction"), ("zoneinfo", "ZoneInfo")], str
    ),
    **dict.fromkeys([("datetime", "tzinfo"), ("collections", "UserString")], str),
    **dict.fromkeys([("pydantic", "SecretStr"), ("pydantic", "SecretBytes"), ("pydantic", "Secret")], str),
    **dict.fromkeys([("pydantic", "AnyUrl"), ("pydantic", "_BaseUrl"), ("pydantic_core", "Url")], str),
    **dict.fromkeys([("pandas", "Period"), ("pandas", "Interval")], str),
    ("enum", "Enum"): lambda value: value.value,
    ("re", "Pattern"): _text_of_pattern,
    ("collections", "deque"): list,
    ("collections", "UserList"): list,
    ("builtins", "generator"): _first_items,
    ("array", "array"): _first_of_sequence,
    ("types", "SimpleNamespace"): _attributes,
    ("argparse", "Namespace"): _attributes,
    ("numpy", "datetime64"): time_of_numpy,
    ("numpy", "timedelta64"): duration_of_numpy,
    ("numpy", "generic"): item_of_numpy,
    ("pandas", "NaTType"): _nothing,
    ("pandas", "NAType"): _nothing,
    ("pyarrow", "Scalar"): _scalar_of_arrow,
    **dict.fromkeys([("numpy", "ndarray"), ("pyarrow", "Array"), ("pyarrow", "ChunkedArray")], _rows),
    **dict.fromkeys([("pandas", "Series"), ("pandas", "Index"), ("pandas", "ExtensionArray")], _rows),
    **dict.fromkeys([("pandas", "DataFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch")], _rows),
    ("pydantic", "BaseModel"): _members_of_model,
    ("balog", "Event"): _members_of_event,
    ("sqlalchemy", "Row"): _members_of_row,
}
"""Conversions by a class's package and name."""

_BY_MEMBER: dict[str, Convert] = {
    "model_dump": _members_of_model,
    "__fspath__": lambda value: os.fsdecode(os.fspath(value)),
}

_ABSTRACT: dict[type, Convert] = {
    Mapping: _first_members,
    MappingView: lambda value: _first_items(value, MAX_MEMBERS),
}
