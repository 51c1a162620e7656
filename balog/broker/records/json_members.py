"""Parse JSON one level deep; members stay encoded.

msgspec reads; what it refuses and Python's ``json`` writes all the same (NaN, Infinity, half a surrogate pair) is read
by Python's own scanner, since the taps that write it and the targets that read it are Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from balog.common.duplicate_keys import has_duplicate_member
from balog.common.errors import BalogError

Value = TypeVar("Value")

Members = dict[str, Raw]
"""An object's members, undecoded. If a key comes twice, the last one counts, as for JSON readers."""

write = msgspec.json.Encoder().encode
"""Write plain data with undecoded parts in it, compactly."""

_members = msgspec.json.Decoder(Members).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_value = msgspec.json.Decoder().decode
_WHITE = " \t\r\n"
# Numbers are only skipped: neither their size nor their digits matter.
_skipper = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len)
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError)


class UnreadableError(BalogError):
    """A record can't be parsed, or its rules can't be applied. The error's text has no data of the record."""


def check_message(line: bytes) -> None:
    """Check that all readers find the same message: one line, and unique keys in the envelope.

    Raises:
        UnreadableError: they do not; or the line is not an object.
    """
    check_line_end(line)
    is_plain = (
        line.count(b'"type"') == 1
        and line.count(b'"stream"') == 1
        and line.count(b'"record"') == 1
        and b"\\u00" not in line
    )
    if not is_plain and has_key_twice(line):
        raise UnreadableError("a key of the message is there twice")


def check_line_end(line: bytes) -> None:
    """Check that a line has a carriage return only at its end.

    Raises:
        UnreadableError: it has.
    """
    if b"\r" in line and b"\r" in line.rstrip(b"\r\n"):
        raise UnreadableError("a carriage return inside of the line, at which some readers begin another one")


def has_key_twice(data: bytes | Raw) -> bool:
    """Return whether an object has a duplicate key at its top level.

    Raises:
        UnreadableError: not an object.
    """
    return _read(
        has_duplicate_member, bytes(data), "an object", lambda pairs: len(pairs) != len({key for key, _ in pairs})
    )


def read_members(data: bytes | Raw) -> Members:
    """Parse an object.

    Raises:
        UnreadableError: it is not.
    """
    return _read(_members, data, "an object", dict)


def read_items(data: bytes | Raw) -> list[Raw]:
    """Parse an array.

    Raises:
        UnreadableError: it is not.
    """
    return _read(_items, data, "an array", lambda pairs: [value for _, value in pairs])


def _read(
    decode: Callable[[Any], Value],
    data: bytes | Raw,
    what: str,
    gather: Callable[[list[tuple[str, Raw]]], Value],
) -> Value:
    """Decode an object or an array; ``gather`` makes the result from the parts that only Python's scanner reads."""
    try:
        return decode(data)
    except msgspec.ValidationError:
        raise UnreadableError(f"not {what}") from None
    except _REFUSALS as error:
        return gather(_scan(bytes(data), error, is_object=what == "an object"))
    except RecursionError:
        raise UnreadableError("nested too deep") from None


def read_value(data: bytes | Raw) -> Any:
    """Parse a value as plain Python data.

    Raises:
        UnreadableError: it cannot be read.
    """
    try:
        return _value(data)
    except _REFUSALS as error:
        try:
            return json.loads(bytes(data).decode("utf-8", "surrogateescape"))
        except ValueError:
            raise _unreadable(error) from None
        except RecursionError:
            raise UnreadableError("nested too deep") from None
    except RecursionError:
        raise UnreadableError("nested too deep") from None


def _unreadable(error: Exception) -> UnreadableError:
    if isinstance(error, UnicodeDecodeError):
        return UnreadableError(f"not UTF-8 at byte {error.start}")
    return UnreadableError(f"not JSON: {str(error).removeprefix('JSON is malformed: ')}")


def _scan(data: bytes, error: Exception, *, is_object: bool) -> list[tuple[str, Raw]]:
    """Return the members of an object, or the items of an array under empty keys; else ``error`` as a refusal."""
    text = data.decode("utf-8", "surrogateescape")
    members: list[tuple[str, Raw]] = []
    opening, closing = "{}" if is_object else "[]"
    try:
        index = _expect(text, 0, opening)
        if text[index : index + 1] != closing:
            while True:
                key = ""
                if is_object:
                    key, index = scanstring(text, _expect(text, index, '"'), True)
                    index = _expect(text, index, ":")
                _, end = _skipper.raw_decode(text, index)
                members.append((key, Raw(text[index:end].encode("utf-8", "surrogateescape"))))
                index = _skip_white(text, end)
                if text[index : index + 1] == closing:
                    break
                index = _expect(text, index, ",")
        if _skip_white(text, index + 1) != len(text):
            raise ValueError
    except ValueError:
        raise _unreadable(error) from None
    except RecursionError:
        raise UnreadableError("nested too deep") from None
    return members


def _skip_white(text: str, index: int) -> int:
    while text[index : index + 1] in _WHITE and index < len(text):
        index += 1
    return index


def _expect(text: str, index: int, char: str) -> int:
    """Return the index after a character and, unless a string begins, the following white space."""
    index = _skip_white(text, index)
    if text[index : index + 1] != char:
        raise ValueError
    return index + 1 if char == '"' else _skip_white(text, index + 1)
