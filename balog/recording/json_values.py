"""Values that JSON has no form for: conversions, checks of what the encoder wrote, and limits."""

from __future__ import annotations

import math
import numbers
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

MAX_LEVELS = 200
MAX_BYTES = 3 * 1024 * 1024
"""Limits of an encoded payload or context. Twice these bytes are well below the longest line that a broker parses."""

NO_NUMBER = "a number that is nan or infinite, null is written"
SAME_KEYS = "two keys that are written the same, one has a number added"

_join = "".join
_PLAIN = frozenset({str, int, float, bool, type(None), bytes, datetime, date, time, timedelta, Decimal, UUID})


def to_data(value: Any) -> Any:
    """Convert a value of a type that msgspec does not know.

    Values of a subclass (``numpy.float64``, ``pandas.Timestamp``, a ``str`` of a library) become the value of the
    class that JSON has a form for. So do numbers and booleans of numpy, and pydantic models.

    Raises:
        TypeError: the value has no JSON form.
    """
    kind = type(value)
    if not isinstance(value, Enum):
        for base, convert in _BASES:
            if isinstance(value, base):
                return convert(value)
        if kind.__module__ == "numpy" and (
            kind.__name__ in _NUMPY or (isinstance(value, numbers.Integral) and kind.__name__ != "timedelta64")
        ):
            plain = value.item()
            if type(plain) in (int, float, bool):
                return plain
    dump = getattr(kind, "model_dump", None)
    if dump is None:
        raise TypeError(f"{kind.__name__} has no JSON form")
    return dump(value, mode="json")


def _plain_time(value: datetime | time) -> str:
    text = value.isoformat()
    if type(text) is not str:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return text


_BASES: tuple[tuple[type, Any], ...] = (
    (str, str.__str__),
    (float, float.__float__),
    (int, int.__int__),
    (datetime, _plain_time),
    (date, lambda value: date(value.year, value.month, value.day)),
    (time, _plain_time),
    (timedelta, lambda value: timedelta(value.days, value.seconds, value.microseconds)),
    (Decimal, Decimal),
)
_NUMPY = frozenset({"bool", "bool_", "float16", "float32"})
"""Names of numpy's types, besides its integers, whose ``item`` is a number or a boolean without a loss."""


def holds_no_number(value: Any) -> bool:
    """Return whether the value has a nan or an infinite number, which encodes as null."""
    try:
        left = [msgspec.to_builtins(value, enc_hook=to_data)]
    except Exception:
        return False
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left.extend(part.values())
        elif isinstance(part, (list, tuple, set, frozenset)):
            left.extend(part)
        elif isinstance(part, float) and not math.isfinite(part):
            return True
    return False


def may_write_a_key_twice(value: Any, objects: int) -> bool:
    """Return whether an object in the value may encode with a duplicate key, because not all keys are texts.

    Args:
        value: any value that ``msgspec.json.encode`` accepts.
        objects: the number of opening braces in the encoded value, an upper limit of its dicts.
    """
    if type(value) is not dict:
        return _has_other_keys(value)
    try:
        _join(value)  # the quickest way to learn that all keys are texts
        if objects > 1:
            for item in value.values():
                if type(item) is dict:
                    _join(item)
                    objects -= 1
            return objects > 1 and _has_other_keys(value)
    except TypeError:
        return True
    return False


def _has_other_keys(value: Any) -> bool:
    """Return whether a dict in the value has a key that is not a text, or a part has its own encoder."""
    left: list[Any] = [value]
    for part in left:  # grows meanwhile
        kind = type(part)
        if kind is dict:
            try:
                _join(part)
            except TypeError:
                return True
            items: Any = part.values()
        elif isinstance(part, msgspec.Struct):
            items = [getattr(part, name) for name in part.__struct_fields__]
        elif kind is list or kind is tuple:
            items = part
        else:
            return True
        left += [item for item in items if type(item) not in _PLAIN]
    return False


def clean_text(text: str) -> str:
    """Return the text as a plain ``str`` that UTF-8 can encode, with a question mark for each lone surrogate."""
    text = str.__str__(text)
    return text.encode("utf-8", "replace").decode()


def safe_str(value: Any, convert: Any = str) -> str:
    """Return ``str(value)``, or a description of the value if that raises.

    Args:
        convert: ``str`` or ``repr``.
    """
    try:
        return str.__str__(convert(value))
    except Exception as error:
        return f"<{type(value).__name__}, whose {convert.__name__} raised {type(error).__name__}>"


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))


def is_deeper_than(document: bytes, levels: int) -> bool:
    """Return whether a JSON document nests deeper than ``levels``; a scalar has 0 levels."""
    if document.count(b"[") + document.count(b"{") <= levels:
        return False
    brackets = _STRING.sub(b"", document).translate(None, _NO_BRACKET)
    for _ in range(levels):  # each round removes the innermost level
        if not brackets:
            return False
        brackets = re.sub(rb"\[\]|\{\}", b"", brackets)
    return bool(brackets)
