"""Fallback encoding: turn any Python value into JSON-like data, and replace only the values without a JSON form."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from balog.common.duplicate_keys import has_duplicate_key, unused_key
from balog.log.values.containers import is_container, length_of, parts_of
from balog.log.values.conversions import TIMES, ConversionError, PartialValue, exact_time, find_conversion
from balog.log.values.json_values import (
    MAX_BYTES,
    MAX_LEVELS,
    NO_NUMBER,
    SAME_KEYS,
    clean_text,
    is_deeper_than,
    safe_str,
    type_name,
)
from balog.log.values.plain_values import (
    MAX_CONVERSIONS_OF_ONE,
    Conversion,
    InterruptedConversionError,
    Made,
    convert_once,
    encode_checked,
    key_text,
)
from balog.log.values.value_path import ValuePath

_MAX_REPR = 64 * 1024
_MAX_SHORT_TEXT = 256
_MAX_PARTS = 100_000  # one by one, which takes about a second
_MAX_PROBLEMS = 50
_MAX_LEVELS_AS_A_WHOLE = 20
_CUT = "…"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode


def make_encodable(value: Any, memo: Made | None = None, redact: Callable[[str], str] | None = None) -> tuple[Any, str]:
    """Convert a value to data that msgspec encodes. Never raises.

    Values with a JSON form stay as they are, and others become their conversion. A value without one becomes its
    ``repr``, of at most 64 Ki characters; nan and infinity become null. Values beyond 3 MiB of JSON in total, deeper
    than 200 levels or inside themselves are cut off. Small values are kept first.

    Args:
        memo: the conversions of this value so far.
        redact: removes secrets from a text before it is cut.

    Returns:
        The data (a dict for a dict), whose bytes are not encoded, and a text that names each kind of change, its first
        path and its number; empty without a change.
    """
    work = _Fallback({} if memo is None else memo, redact or str)
    data = work.convert(value)
    if issubclass(type(value), dict) and not isinstance(data, dict):
        data = {"value": data}
    return data, work.problem()


class _Waiting(NamedTuple):
    """A container or a long text that is not converted yet; ``holder[slot]`` takes its data."""

    weight: int
    number: int
    value: Any
    holder: Any
    slot: Any
    path: ValuePath


class _Fallback:
    """One conversion. Containers and long texts are queued, and the smallest is next, until the limit is reached."""

    def __init__(self, memo: Made, redact: Callable[[str], str]) -> None:
        self._made = memo
        self._redact = redact
        self._room = MAX_BYTES
        self._parts = 0
        self._problems: dict[str, tuple[str, int]] = {}
        self._unnamed = 0
        self._waiting: list[_Waiting] = []
        self._number = 0

    def convert(self, value: Any) -> Any:
        result: list[Any] = [None]
        # A value that is not an object is written into one.
        self._put(value, result, 0, ValuePath("$", None, 1 if issubclass(type(value), dict) else 2))
        while self._waiting:
            _, _, part, holder, slot, path = heapq.heappop(self._waiting)
            if type(part) is str:
                holder[slot] = self._cut(part, path)
            else:
                self._open(part, holder, slot, path)
        return result[0]

    def problem(self) -> str:
        texts = [
            f"{reason}, at {path}" + (f" and {count - 1} more" if count > 1 else "")
            for reason, (path, count) in self._problems.items()
        ]
        if self._unnamed:
            texts.append(f"and {self._unnamed} more changes")
        return "; ".join(texts)

    def _note(self, reason: str, path: ValuePath) -> None:
        first, count = self._problems.get(reason, ("", 0))
        if not count and len(self._problems) >= _MAX_PROBLEMS:
            self._unnamed += 1
        else:
            self._problems[reason] = first or str(path), count + 1

    def _put(self, value: Any, holder: Any, slot: Any, path: ValuePath) -> None:
        """Write a scalar, or queue a container or a long text."""
        try:
            value = self._converted(value, path)
            if not is_container(value):
                value = self._scalar(value, path)
        except Exception as error:  # an object may run code of its own when it is read
            value = self._unreadable(value, error, path)
        if type(value) is str:
            if len(value) > _MAX_SHORT_TEXT:
                holder[slot] = ""
                self._room -= 8
                self._wait(len(value), value, holder, slot, path)
            else:
                holder[slot] = self._cut(value, path)
        elif not is_container(value):
            holder[slot] = value
            self._room -= len(_encode(value)) + 1
        elif path.levels > MAX_LEVELS:
            self._note(f"deeper than {MAX_LEVELS} levels, cut off", path)
            holder[slot] = _CUT
        elif path.is_inside(id(value)):
            self._note("inside itself, cut off", path)
            holder[slot] = _CUT
        else:
            holder[slot] = None
            self._room -= 3
            self._wait(8 * length_of(value), value, holder, slot, path)

    def _converted(self, value: Any, path: ValuePath) -> Any:
        """Return the result of the conversions of a value, or its repr if it has no JSON form."""
        try:
            for _ in range(MAX_CONVERSIONS_OF_ONE):
                conversion = find_conversion(type(value))
                if conversion is None:
                    return value
                value = convert_once(self._made, conversion, value)
                if type(value) is PartialValue:
                    self._note(value.problem, path)
                    return value.value
            reason = f"{type(value).__name__} was converted {MAX_CONVERSIONS_OF_ONE} times"
        except ConversionError as error:
            reason = str(error)
        self._note(f"{reason}, its repr is written", path)
        return self._representation(value, path)

    def _wait(self, weight: int, value: Any, holder: Any, slot: Any, path: ValuePath) -> None:
        self._number += 1
        heapq.heappush(self._waiting, _Waiting(weight, self._number, value, holder, slot, path))

    def _open(self, value: Any, holder: Any, slot: Any, path: ValuePath) -> None:
        """Convert a container as a whole if possible, else part by part."""
        if path.levels <= _MAX_LEVELS_AS_A_WHOLE and self._convert_as_a_whole(value, holder, slot, path):
            return
        try:
            parts = self._raw(value, path) if type(value) is msgspec.Raw else parts_of(value)
        except Exception as error:
            holder[slot] = self._cut(self._unreadable(value, error, path), path)
            return
        if type(value) is msgspec.Raw:
            self._put(parts, holder, slot, path)
        elif isinstance(parts, list):
            holder[slot] = self._items(parts, id(value), path)
        else:
            holder[slot] = self._members(parts, id(value), path)

    def _convert_as_a_whole(self, value: Any, holder: Any, slot: Any, path: ValuePath) -> bool:
        try:
            data = Conversion(self._made).convert(value, 0)
            encoded = encode_checked(data)
            if len(encoded) > self._room or is_deeper_than(encoded, MAX_LEVELS - path.levels + 1):
                return False
        except Exception:
            return False
        holder[slot] = data
        self._room -= len(encoded)
        return True

    def _raw(self, value: msgspec.Raw, path: ValuePath) -> Any:
        try:
            data = _decode(value)
            if has_duplicate_key(value):
                self._note("Raw with a key twice, the last value is written", path)
            return data
        except Exception:
            self._note("Raw that is not JSON", path)
            return bytes(value).decode("utf-8", "replace")

    def _items(self, items: list[Any], container: int, path: ValuePath) -> list[Any]:
        data: list[Any] = []
        for number, item in enumerate(items):
            self._parts += 1
            if self._room <= 0 or self._parts > _MAX_PARTS:
                self._note(f"{len(items) - number} of {len(items)} items left out", path)
                break
            data.append(None)
            self._put(item, data, number, path.to(number, container))
        return data

    def _members(self, members: dict[Any, Any], container: int, path: ValuePath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        left_out = 0
        for number, (key, item) in enumerate(members.items()):
            self._parts += 1
            if self._room <= 0 or self._parts > _MAX_PARTS:
                left_out += len(members) - number
                break
            name = self._key(key, path)
            size = len(_encode(name)) + 2
            if size > self._room:
                left_out += 1
                continue
            if name in data:
                self._note(SAME_KEYS, path.to(name, container))
                name = unused_key(name, data)
            self._room -= size
            data[name] = None
            self._put(item, data, name, path.to(name, container))
        if left_out:
            self._note(f"{left_out} of {len(members)} members left out", path)
        return data

    def _key(self, key: Any, path: ValuePath) -> str:
        try:
            return self._clean(key_text(key), path)
        except Exception:
            self._note("a key without a JSON form, its repr is written", path)
            return self._clean(safe_str(key, repr)[:_MAX_REPR], path)

    def _scalar(self, value: Any, path: ValuePath) -> Any:
        """Return data for a value that is not a container."""
        kind = type(value)
        if kind is str:
            return self._clean(value, path)
        if kind is float:
            return self._finite(value, path)
        if kind is int:
            return self._integer(value, path)
        if kind in TIMES:
            return exact_time(value)
        try:
            size = len(_encode(value))
        except Exception:
            self._note(f"{kind.__name__} has no JSON form, its repr is written", path)
            return self._representation(value, path)
        if kind in (bytes, bytearray) and size > self._room:
            self._note(f"{len(value)} bytes left out", path)
            return _CUT
        return value

    def _finite(self, value: float, path: ValuePath) -> float | None:
        if math.isfinite(value):
            return value
        self._note(NO_NUMBER, path)
        return None

    def _integer(self, value: int, path: ValuePath) -> Any:
        try:
            _decode(_encode(value))
        except Exception:
            self._note("a number too long to write", path)
            return self._representation(value, path)
        return value

    def _representation(self, value: Any, path: ValuePath) -> str:
        text = clean_text(safe_str(value, repr))
        if len(text) > _MAX_REPR:
            text = self._redact(text)
            self._note(f"{len(text) - _MAX_REPR} of {len(text)} characters of a repr left out", path)
            return text[:_MAX_REPR] + _CUT
        return text

    def _unreadable(self, value: Any, error: Exception, path: ValuePath) -> str:
        name = type_name(value)
        reason = str(error) if type(error) is InterruptedConversionError else type(error).__name__
        self._note(f"{name} cannot be read: {reason}", path)
        return f"<{name}>"

    def _clean(self, text: str, path: ValuePath) -> str:
        cleaned = clean_text(text)
        if cleaned != str.__str__(text):
            self._note("text with lone surrogates, a question mark is written for each", path)
        return cleaned

    def _cut(self, text: str, path: ValuePath) -> str:
        """Return the text, or as much of it as there is room for."""
        room = max(0, self._room)
        if len(text) > room // 6:  # a character takes at most six bytes
            text = self._redact(text)
        kept = text[:room]
        while (size := len(_encode(kept))) > room and kept:
            kept = kept[: min(len(kept) - 1, len(kept) * room // size)]
        self._room -= size + 1
        if len(kept) == len(text):
            return text
        self._note(f"{len(text) - len(kept)} of {len(text)} characters left out", path)
        return kept + _CUT
