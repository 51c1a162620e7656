"""Arrays of numbers as fields of structs: 4 or 8 bytes a number, and their form in a store."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Numbers = array[Any]
else:  # Python before 3.12 cannot subscript it, and msgspec evaluates annotations
    Numbers = array


def encode_array(value: Any) -> bytes:
    """Encode an array for msgspec: its type code, and its bytes."""
    if isinstance(value, array):
        return value.typecode.encode() + value.tobytes()
    raise NotImplementedError(type(value))


def decode_array(type: Any, value: Any) -> Any:
    """Decode an array."""
    if type is not array:
        raise NotImplementedError(type)
    if not isinstance(value, bytes) or not value:
        raise ValueError("expected the bytes of an array")
    numbers: array[Any] = array(value[:1].decode())
    numbers.frombytes(value[1:])
    return numbers
