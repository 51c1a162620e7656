"""Encodes JSON text as a VARIANT, in the binary encoding of the Parquet project.

https://github.com/apache/parquet-format/blob/master/VariantEncoding.md. Integers take the smallest of 1, 2, 4 and 8
bytes; larger ones become decimals of up to 38 digits; all other numbers are doubles. For duplicate keys the last value
counts, as everywhere in balog.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import msgspec

_NULL, _TRUE, _FALSE = b"\x00", b"\x04", b"\x08"
_LONG_STRING, _DOUBLE, _DECIMAL16 = 16 << 2, 7 << 2, 10 << 2
_INTEGERS = ((1 << 7, struct.Struct("<Bb"), 3 << 2), (1 << 15, struct.Struct("<Bh"), 4 << 2),
             (1 << 31, struct.Struct("<Bi"), 5 << 2), (1 << 63, struct.Struct("<Bq"), 6 << 2))  # fmt: skip
_pack_double = struct.Struct("<Bd").pack
_pack_long_string = struct.Struct("<BI").pack
_decode = msgspec.json.Decoder(float_hook=float).decode


def encode(text: str | bytes) -> tuple[bytes, bytes]:
    """Return the ``(value, metadata)`` of a JSON text.

    Raises:
        msgspec.DecodeError: it is not JSON.
        RecursionError: it is nested deeper than Python's recursion limit (about a thousand levels).
    """
    ids: dict[str, int] = {}
    value = _value(_decode(text), ids)
    return value, _metadata(tuple(ids))


@lru_cache(maxsize=4096)
def _metadata(keys: tuple[str, ...]) -> bytes:
    encoded = [key.encode() for key in keys]
    total = sum(map(len, encoded))
    width = _width(max(total, len(keys)))
    ends = [0]
    for key in encoded:
        ends.append(ends[-1] + len(key))
    head = bytes([1 | (width - 1) << 6]) + len(keys).to_bytes(width, "little")
    return head + _numbers(ends, width) + b"".join(encoded)


def _value(item: Any, ids: dict[str, int]) -> bytes:
    kind = type(item)
    if kind is str:
        data: bytes = item.encode()
        length = len(data)
        return bytes((length << 2 | 1,)) + data if length < 64 else _pack_long_string(_LONG_STRING, length) + data
    if kind is int:
        return _integer(item)
    if kind is dict:
        return _object(item, ids)
    if kind is float:
        return _pack_double(_DOUBLE, item)
    if kind is list:
        return _container([_value(element, ids) for element in item], None)
    if item is None:
        return _NULL
    return _TRUE if item else _FALSE


def _integer(number: int) -> bytes:
    for limit, form, header in _INTEGERS:
        if -limit <= number < limit:
            return form.pack(header, number)
    if abs(number) < 10**38:
        return bytes((_DECIMAL16, 0)) + number.to_bytes(16, "little", signed=True)
    return _pack_double(_DOUBLE, float(number) if abs(number) < 10**308 else float("inf") * (1 if number > 0 else -1))


def _object(item: dict[str, Any], ids: dict[str, int]) -> bytes:
    for key in item:
        ids.setdefault(key, len(ids))
    # Readers search fields by name, so the ids are ordered by the bytes of the names.
    names = sorted(item) if all(map(str.isascii, item)) else sorted(item, key=str.encode)
    return _container([_value(item[name], ids) for name in names], [ids[name] for name in names])


def _container(values: list[bytes], fields: list[int] | None) -> bytes:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    count = len(values)
    large, width = count > 255, _width(offsets[-1])
    size = count.to_bytes(4 if large else 1, "little")
    if fields is None:
        head, listed = 3 | (width - 1) << 2 | large << 4, b""
    else:
        id_width = _width(max(fields, default=0))
        head, listed = 2 | (width - 1) << 2 | (id_width - 1) << 4 | large << 6, _numbers(fields, id_width)
    return b"".join((bytes((head,)), size, listed, _numbers(offsets, width), *values))


def _width(largest: int) -> int:
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 3 if largest < 1 << 24 else 4


def _numbers(numbers: list[int], width: int) -> bytes:
    if width == 1:
        return bytes(numbers)
    return b"".join(number.to_bytes(width, "little") for number in numbers)
