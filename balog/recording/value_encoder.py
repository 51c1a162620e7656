"""Encode any value as one JSON object: unchanged, with the conversions of its types, or with the fallback encoding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from balog.duplicate_keys import unused_key
from balog.recording.conversions import Conversions, Convert
from balog.recording.fallback_encoding import make_encodable
from balog.recording.json_values import MAX_BYTES, MAX_LEVELS, is_deeper_than
from balog.recording.plain_values import Conversion, Made, are_finite, encode_checked

NO_OBJECT = "a payload is an object; this one was not"

_encode = msgspec.json.Encoder().encode
_TEXT = frozenset({str})


class ValueEncoder:
    """Encodes payloads and contexts. Thread-safe.

    Args:
        encoders: functions that convert values of a type, by type; see ``Conversions``.
    """

    def __init__(self, encoders: Mapping[type, Convert] | None = None) -> None:
        self.conversions = Conversions(encoders)
        self._is_leaf = self.conversions.json_leaves.issuperset

    def encode_plain(self, value: Any) -> bytes | None:
        """Encode a dict of JSON's own types, dates, UUIDs and decimals; return None for any other value.

        The encoding shows all text of the value. None is also the result for a nan, a text that is not UTF-8, and more
        than 3 MiB or 200 levels.
        """
        if type(value) is not dict:
            return None
        try:
            encoded = _encode(value)
        except Exception:
            return None
        size = len(encoded)
        if size > MAX_BYTES or not self._is_plain(value, b"null" in encoded):
            return None
        if size > 2 * MAX_LEVELS and is_deeper_than(encoded, MAX_LEVELS):  # each level has two bytes
            return None
        return encoded

    def _is_plain(self, value: dict[Any, Any], has_null: bool) -> bool:
        """Return whether all parts have types of JSON, all keys are texts, and no number is nan."""
        is_leaf = self._is_leaf
        waiting: list[Any] = [value]
        for part in waiting:  # grows meanwhile
            if type(part) is dict:
                if not _TEXT.issuperset(map(type, part)):
                    return False
                items: Any = part.values()
            else:
                items = part
            if has_null and not are_finite(items):
                return False
            if not is_leaf(map(type, items)):
                for item in items:
                    kind = type(item)
                    if kind is dict or kind is list or kind is tuple:
                        waiting.append(item)
                    elif not is_leaf((kind,)):
                        return False
        return True

    def encode(self, value: Any, redact: Callable[[str], str] | None = None) -> tuple[bytes, Any, bool]:
        """Encode any value as one JSON object in one line. Never raises.

        The object's ``problem`` names each change with its path. A ``problem`` of the value itself stays: the changes
        are added to a text, or written as ``problem 2``. Anything beyond 3 MiB or 200 levels is cut off.

        Args:
            redact: removes secrets from a text before it is cut, because half a secret is not recognized.

        Returns:
            The encoding; the data that it was made of, whose bytes are not encoded; whether it has a new ``problem``.
        """
        made: Made = {}
        with suppress(Exception):  # the fallback finds the reason
            data = Conversion(self.conversions, made).convert(value, 0)
            if isinstance(data, dict):
                return encode_checked(data), data, False
        data, problem = make_encodable(value, self.conversions, made, redact)
        if not isinstance(data, dict):
            data, problem = {"value": data}, problem or NO_OBJECT
        if problem:
            data = with_problem(data, problem)
        return _encode(data), data, bool(problem)

    def encode_unchanged(self, value: Any) -> tuple[bytes, Any]:
        """Encode as one JSON object in one line, with the conversions of its types.

        Returns:
            The encoding, and its data as in ``encode``.

        Raises:
            Exception: a value has no JSON form, an encoder raises, an array is cut, a number is nan, two keys are
                written the same, or the value is no object or larger than 3 MiB or deeper than 200 levels.
        """
        data = Conversion(self.conversions, {}).convert(value, 0)
        if not isinstance(data, dict):
            raise TypeError(NO_OBJECT)
        return encode_checked(data), data

    def as_dict(self, value: Any, *, strict: bool) -> dict[Any, Any]:
        """Convert a payload of any type to a dict of its members; they may need further conversions.

        Raises:
            Exception: the value is not an object; only if ``strict``.
        """
        if isinstance(value, dict) and self.conversions.find(type(value)) is None:
            return value
        try:
            data = Conversion(self.conversions, {}).convert(value, 0)
        except Exception:
            if strict:
                raise
            data, problem = make_encodable(value, self.conversions)
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
