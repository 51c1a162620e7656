"""Find keys that a JSON object has twice, however each of the two is spelled.

Some readers use the first value of such a key (DuckDB, simdjson), others the last (Python, msgspec). So a document
with one is rejected at its entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from balog.common.text import printable

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
    """Return whether any object of a JSON document has a duplicate key, even if the two are spelled differently.

    Raises:
        RecursionError: the document is nested too deep.
    """
    try:
        decode_once(document)
    except DuplicateKeyError:
        return True
    return False


def decode_once(document: bytes | Raw) -> Any:
    """Decode a JSON document without duplicate keys.

    Returns:
        The value; None also for a document that msgspec can't decode.

    Raises:
        DuplicateKeyError: an object has a duplicate key.
        RecursionError: the document is nested too deep.
    """
    data = bytes(document)
    try:
        value = _decode(data)
        again = _encode(value)  # each key once
    except _REFUSALS:  # only Python's json reads it, such as 1e999 or half a surrogate pair
        value, again = None, b""
    # A colon may be written as \u003a; otherwise the colons of keys and texts add up.
    if again != data and (not again or b"\\u003" in data or data.count(b":") != again.count(b":")):
        path = next(find_duplicate_keys(data), None)
        if path is not None:
            raise DuplicateKeyError(path)
    return value


def has_duplicate_member(document: bytes) -> bool:
    """Return whether a JSON object has a duplicate key at its top level.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: the document is not a readable object.
    """
    members = _members(document)
    if b"\\u003" not in document:
        return document.count(b":") != _encode(members).count(b":")
    tops = json.loads(document.decode("utf-8", "surrogateescape"), object_pairs_hook=_Pairs, **_NUMBERS)
    return len(tops) != len(members)


def find_duplicate_keys(document: bytes) -> Iterator[str]:
    """Yield the path of each repeated key (``$.payload.price``), in the document's order.

    Raises:
        RecursionError: the document is nested too deep.
    """
    try:
        text = document.decode("utf-8", "surrogateescape")
        read = json.loads(text, object_pairs_hook=_Pairs, **_NUMBERS)
    except ValueError:  # not JSON, which the caller reports
        return
    yield from _find(read, "$")


class _Pairs(list[tuple[str, Any]]):
    """All members of an object, in order."""


_NUMBERS: dict[str, Any] = {"parse_int": len, "parse_float": len}  # only skipped: some are too long for Python


def _find(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, member in value:
            member_path = f"{path}.{printable(key[:100])}"
            if key in seen:
                yield member_path
            seen.add(key)
            yield from _find(member, member_path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _find(item, f"{path}[{number}]")


def unused_key(key: str, *taken: Mapping[Any, Any]) -> str:
    """Return the key, with a number added if one of the objects has it already."""
    number = 1
    unused = key
    while any(unused in mapping for mapping in taken):
        number += 1
        unused = f"{key} {number}"
    return unused
