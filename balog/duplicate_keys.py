"""Find keys that a JSON object has twice, however each of the two is spelled.

Some readers take the first value of such a key (DuckDB, simdjson), others the last (Python, msgspec). So a document
with one is refused where it enters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

__all__ = [
    "DuplicateKeyError",
    "decode_once",
    "find_duplicate_key",
    "find_duplicate_keys",
    "has_duplicate_key",
    "has_duplicate_member",
    "printable",
    "unused_key",
]

_decode = msgspec.json.Decoder().decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode
_REFUSALS = (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError)


class DuplicateKeyError(Exception):
    """An object has a key twice; ``path`` says where, as a JSONPath."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def has_duplicate_key(document: bytes | Raw) -> bool:
    """Return whether any object of a JSON document has a key twice, compared as texts and not as they are spelled.

    Raises:
        RecursionError: nested too deep to be read.
    """
    try:
        decode_once(document)
    except DuplicateKeyError:
        return True
    return False


def decode_once(document: bytes | Raw) -> Any:
    """Return the value of a JSON document in which no object has a key twice.

    Returns:
        None also for a document that msgspec does not read.

    Raises:
        DuplicateKeyError: an object has.
        RecursionError: nested too deep to be read.
    """
    data = bytes(document)
    try:
        value = _decode(data)
        again = _encode(value)  # each key once
    except _REFUSALS:  # what only Python's json reads, such as 1e999 or half a surrogate pair
        value, again = None, b""
    # A colon may be written as \u003a; else there are as many as keys and colons in texts.
    if again != data and (not again or b"\\u003" in data or data.count(b":") != again.count(b":")):
        path = find_duplicate_key(data)
        if path is not None:
            raise DuplicateKeyError(path)
    return value


def has_duplicate_member(document: bytes) -> bool:
    """Return whether a JSON object has a key twice at its top; what is inside of its values is not looked at.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is not an object, or cannot be read.
    """
    found = _members(document)
    if b"\\u003" not in document:
        return document.count(b":") != _encode(found).count(b":")
    tops = json.loads(document.decode("utf-8", "surrogateescape"), object_pairs_hook=_Pairs, **_NUMBERS)
    return len(tops) != len(found)


def find_duplicate_key(document: bytes) -> str | None:
    """Return the path of the first key that an object has twice (``$.payload.price``); None if there is none.

    Raises:
        RecursionError: nested too deep to be read.
    """
    return next(find_duplicate_keys(document), None)


def find_duplicate_keys(document: bytes) -> Iterator[str]:
    """Yield the path of each key that comes again in its object, in the document's order.

    Raises:
        RecursionError: nested too deep to be read.
    """
    try:
        text = document.decode("utf-8", "surrogateescape")
        read = json.loads(text, object_pairs_hook=_Pairs, **_NUMBERS)
    except ValueError:  # not JSON, which is for others to say
        return
    yield from _find(read, "$")


class _Pairs(list[tuple[str, Any]]):
    """An object's members in their order, none of them left out."""


_NUMBERS: dict[str, Any] = {"parse_int": len, "parse_float": len}  # only skipped: some are too long for Python


def _find(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, member in value:
            place = f"{path}.{printable(key)}"
            if key in seen:
                yield place
            seen.add(key)
            yield from _find(member, place)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _find(item, f"{path}[{number}]")


def unused_key(key: str, *taken: Mapping[Any, Any]) -> str:
    """Return the key, with a number added if one of the objects has it already."""
    number = 1
    unused = key
    while any(unused in one for one in taken):
        number += 1
        unused = f"{key} {number}"
    return unused


def printable(key: str) -> str:
    """Return at most 100 characters of a key; the replacement character stands for each that does not print."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in key[:100])
