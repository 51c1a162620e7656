"""Convert values as a whole to what msgspec writes: leaves, dicts with texts as keys, and lists."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import msgspec

from balog.common.duplicate_keys import has_duplicate_key
from balog.log.values.containers import is_container, parts_of
from balog.log.values.conversions import (
    LEAVES,
    TIMES,
    ConversionError,
    Convert,
    PartialValue,
    exact_time,
    find_conversion,
)
from balog.log.values.json_values import MAX_BYTES, MAX_LEVELS, NO_NUMBER, SAME_KEYS, is_deeper_than, type_name

MAX_CONVERSIONS_OF_ONE = 20
"""Number of times that the result of a conversion is converted again."""

_MAX_CONVERSIONS = 100_000
_MAX_PARTS = 200_000
_MAX_CONVERTED_LEVELS = 100
_TEXT = frozenset({str})
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode
_UNREADABLE_NUMBER = re.compile(rb"-\d{4300}")  # msgspec writes a digit more than it reads

Made = dict[int, tuple[Any, Any]]
"""The results of conversions by the id of the value, with the value itself, so that ids stay in use.

A generator can be read once, and a model may take long.
"""


class Conversion:
    """The conversion of one value to leaves, dicts and lists, as a whole.

    Args:
        memo: the conversions so far.
    """

    def __init__(self, memo: Made) -> None:
        self._left = _MAX_PARTS
        self._made = memo

    def convert(self, value: Any, levels: int) -> Any:
        """Return data of a value.

        Raises:
            Exception: a part has no JSON form or is cut, or two keys are written the same.
        """
        kind = type(value)
        if kind in LEAVES:
            return value
        if kind in TIMES:
            return exact_time(value)
        self._left -= 1
        if levels > _MAX_CONVERTED_LEVELS or self._left < 0:
            raise ConversionError("too deep or too large to be converted as a whole")
        if kind is not dict and kind is not list and kind is not tuple:
            conversion = find_conversion(kind)
            if conversion is not None:
                result = convert_once(self._made, conversion, value)
                if type(result) is PartialValue:
                    raise ConversionError(f"{kind.__name__}: {result.problem}")
                return self.convert(result, levels + 1)
            if not is_container(value):
                raise ConversionError(f"{kind.__name__} has no JSON form")
            if kind is msgspec.Raw:
                return _data_of_raw(value)
            value = parts_of(value)
        leaves = LEAVES
        if type(value) is not dict:
            return [item if type(item) in leaves else self.convert(item, levels + 1) for item in value]
        members = value if _TEXT.issuperset(map(type, value)) else _with_texts(value)
        return {
            name: item if type(item) in leaves else self.convert(item, levels + 1) for name, item in members.items()
        }


def _with_texts(members: dict[Any, Any]) -> dict[str, Any]:
    named = {key_text(key): item for key, item in members.items()}
    if len(named) != len(members):
        raise ValueError(SAME_KEYS)
    return named


def convert_once(memo: Made, conversion: Convert, value: Any) -> Any:
    """Return the result of a conversion, from ``memo`` if the value has been converted before.

    Raises:
        Exception: the conversion raises.
    """
    entry = memo.get(id(value))
    if entry is None:
        if len(memo) >= _MAX_CONVERSIONS:
            raise ConversionError(f"more than {_MAX_CONVERSIONS} values to convert")
        try:
            result = conversion(value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # such as the panic of an extension in Rust
            result = _Failure(error if isinstance(error, Exception) else InterruptedConversionError(type_name(error)))
        entry = memo[id(value)] = value, result
    if type(entry[1]) is _Failure:
        raise entry[1].error
    return entry[1]


class InterruptedConversionError(Exception):
    """A conversion raised a BaseException, such as GeneratorExit; the text is the name of its type."""


class _Failure(NamedTuple):
    error: Exception


def key_text(key: Any) -> str:
    """Return the text of a key.

    Raises:
        Exception: the key has no JSON form, such as None, a boolean, a tuple or bytes that are not UTF-8.
    """
    for _ in range(MAX_CONVERSIONS_OF_ONE):
        if isinstance(key, bytes):
            return bytes.decode(key, "utf-8")
        conversion = find_conversion(type(key))
        if conversion is None:
            break
        key = conversion(key)
    if type(key) is str:
        return key
    if type(key) in TIMES:
        key = exact_time(key)
    (name,) = _decode(_encode({key: None}))
    text: str = name
    return text


def _data_of_raw(value: msgspec.Raw) -> Any:
    data = _decode(value)
    if has_duplicate_key(value):
        raise ValueError(SAME_KEYS)
    return data


def has_numbers_only(data: Any) -> bool:
    """Return whether no float in dicts, lists and tuples is nan or infinite."""
    waiting: list[Any] = [data]
    for part in waiting:  # grows meanwhile
        for item in part.values() if type(part) is dict else part:
            kind = type(item)
            if kind is float:
                if not math.isfinite(item):
                    return False
            elif kind is dict or kind is list or kind is tuple:
                waiting.append(item)
    return True


def is_within_limits(encoded: bytes) -> bool:
    """Return whether a document is at most 3 MiB large and 200 levels deep, as readers accept it."""
    if len(encoded) > MAX_BYTES or is_deeper_than(encoded, MAX_LEVELS):
        return False
    return len(encoded) <= 4300 or _UNREADABLE_NUMBER.search(encoded) is None


def encode_checked(data: dict[str, Any]) -> bytes:
    """Encode data; raise ValueError if it is larger or deeper than readers accept, or a number is nan or too long."""
    encoded = _encode(data)
    if not is_within_limits(encoded):
        raise ValueError(f"more than {MAX_BYTES} bytes or {MAX_LEVELS} levels, or a number too long to read")
    if b"null" in encoded and not has_numbers_only(data):
        raise ValueError(NO_NUMBER)
    return encoded
