"""Encode any value as one JSON object: unchanged, with the conversions of its types, or with the fallback encoding."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from balog.common.duplicate_keys import unused_key
from balog.log.values.conversions import JSON_LEAVES, TIMES, find_conversion, has_exact_offset
from balog.log.values.fallback_encoding import make_encodable
from balog.log.values.json_values import MAX_LEVELS
from balog.log.values.plain_values import Conversion, Made, encode_checked, is_within_limits

NO_OBJECT = "a payload is an object; this one was not"

_encode = msgspec.json.Encoder().encode
_join = "".join
_MAX_NAMES = 4096
_MAX_NAMES_LENGTH = 8192


_LEAVES = JSON_LEAVES - {float} - TIMES  # which may be nan or have odd offsets
_names: set[str] = set()


def encode_plain(value: Any) -> bytes | None:
    """Encode a dict of JSON's own types, dates, UUIDs and decimals; return None for any other value.

    The encoding shows all text of the value. None is also the result for a nan, a text that is not UTF-8, and more
    than 3 MiB or 200 levels.
    """
    if type(value) is not dict:
        return None
    try:
        encoded = _encode(value)
        if len(encoded) > 2 * MAX_LEVELS and not is_within_limits(encoded):  # each level has two bytes
            return None
        leaves = _LEAVES
        if not _names.issuperset(value):
            _learn(value)
        for item in value.values():
            kind = type(item)
            if kind not in leaves and not _is_plain(kind, item):
                return None
        return encoded
    except Exception:  # of a value that is not plain, or that another thread changes
        return None


def _is_plain(kind: type, value: Any) -> bool:
    """Return whether all parts of a value, whose type is no leaf, have types of JSON, and all keys are texts."""
    leaves = _LEAVES
    if kind is dict:
        if not _names.issuperset(value):
            _learn(value)
        value = value.values()
    elif kind is float:
        return math.isfinite(value)
    elif kind in TIMES:
        return has_exact_offset(value)
    elif kind is not list and kind is not tuple:
        return False
    elif leaves.issuperset(map(type, value)):
        return True
    for item in value:
        kind = type(item)
        if kind not in leaves and not _is_plain(kind, item):
            return False
    return True


def _learn(names: dict[Any, Any]) -> None:
    """Check that all keys are texts. The known ones are found again in less time.

    Raises:
        TypeError: a key is not a text.
    """
    if len(_join(names)) <= _MAX_NAMES_LENGTH and len(names) <= _MAX_NAMES // 8:
        if len(_names) > _MAX_NAMES:
            _names.clear()
        _names.update(map(str.__str__, names))


def encode(value: Any, redact: Callable[[str], str] | None = None) -> tuple[bytes, Any, bool]:
    """Encode any value as one JSON object in one line. Never raises.

    The object's ``problem`` names each change with its path. A ``problem`` of the value itself stays: the changes
    are added to a text, or written as ``problem 2``. Anything beyond 3 MiB or 200 levels is cut off.

    Args:
        redact: removes secrets from a text before it is cut, because half a secret is not recognized.

    Returns:
        The encoding; the data that it was made of, whose bytes are not encoded; whether it has a new ``problem``.
    """
    memo: Made = {}
    with suppress(Exception):  # the fallback finds the reason
        data = Conversion(memo).convert(value, 0)
        if isinstance(data, dict):
            return encode_checked(data), data, False
    data, problem = make_encodable(value, memo, redact)
    if not isinstance(data, dict):
        data, problem = {"value": data}, problem or NO_OBJECT
    if problem:
        data = with_problem(data, problem)
    return _encode(data), data, bool(problem)


def encode_unchanged(value: Any) -> tuple[bytes, Any]:
    """Encode as one JSON object in one line, with the conversions of its types.

    Returns:
        The encoding, and its data as in ``encode``.

    Raises:
        Exception: a value has no JSON form, an array is cut, a number is nan, two keys are written the same, or the
            value is no object or larger than 3 MiB or deeper than 200 levels.
    """
    data = Conversion({}).convert(value, 0)
    if not isinstance(data, dict):
        raise TypeError(NO_OBJECT)
    return encode_checked(data), data


def as_dict(value: Any, *, strict: bool) -> dict[Any, Any]:
    """Convert a payload of any type to a dict of its members; they may need further conversions.

    Raises:
        Exception: the value is not an object; only if ``strict``.
    """
    if isinstance(value, dict) and find_conversion(type(value)) is None:
        return value
    try:
        data = Conversion({}).convert(value, 0)
    except Exception:
        if strict:
            raise
        data, problem = make_encodable(value)
        if isinstance(data, dict):
            return with_problem(data, problem) if problem else data
    if isinstance(data, dict):
        return data
    if strict:
        raise TypeError(NO_OBJECT)
    return {"value": data, "problem": NO_OBJECT}


def with_problem(data: dict[str, Any], problem: str) -> dict[str, Any]:
    """Add a description of the changes to the data's ``problem``, and return the data."""
    own = data.get("problem")
    if own is None:
        return {**data, "problem": problem}
    if isinstance(own, str):
        return {**data, "problem": f"{own}; {problem}"}
    return {**data, unused_key("problem", data): problem}
