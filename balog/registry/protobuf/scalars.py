"""Converts single values of stored JSON to values of protobuf's runtime."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field

Convert = Callable[[Any], Any]
"""Converts a JSON value to a field's value; raises ``ValueRejectedError``."""

INTEGERS = {
    kind: (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    for bits, signed, kinds in (
        (32, True, (Field.TYPE_INT32, Field.TYPE_SINT32, Field.TYPE_SFIXED32)),
        (64, True, (Field.TYPE_INT64, Field.TYPE_SINT64, Field.TYPE_SFIXED64)),
        (32, False, (Field.TYPE_UINT32, Field.TYPE_FIXED32)),
        (64, False, (Field.TYPE_UINT64, Field.TYPE_FIXED64)),
    )
    for kind in kinds
}
"""The least and the greatest value of each kind of integer."""

FLOAT_MAX = 3.4028235e38
"""The greatest float in decimal notation; it is slightly larger than the exact value, and rounds to it."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_UNUSUAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}", re.ASCII)


class ValueRejectedError(ValueError):
    """A value is rejected. The reason does not contain the value."""


def make_key_converter(field: Any) -> Convert:
    """Return a converter for the keys of a map, which are strings in JSON."""
    if field.type == Field.TYPE_STRING:
        return _text
    if field.type == Field.TYPE_BOOL:

        def boolean(text: Any) -> bool:
            if text not in ("true", "false"):
                raise ValueRejectedError("want the key true or false")
            return bool(text == "true")

        return boolean
    return _integer(field, of_text=True)


def make_converter(field: Any) -> Convert:
    """Return a converter for the values of a scalar field."""
    kind = field.type
    if kind in INTEGERS:
        return _integer(field)
    if kind in (Field.TYPE_DOUBLE, Field.TYPE_FLOAT):
        return _float(kind == Field.TYPE_FLOAT)
    if kind == Field.TYPE_ENUM:
        return _enum(field.enum_type)
    return {Field.TYPE_BOOL: _boolean, Field.TYPE_STRING: _text, Field.TYPE_BYTES: _bytes}[kind]


def _integer(field: Any, of_text: bool = False) -> Convert:
    least, most = INTEGERS[field.type]
    refusal = f"want an integer from {least} to {most}"
    texts = of_text or most > 1 << 32  # 64 bits are written as text, for those whose numbers are doubles

    def convert(value: Any) -> int:
        if type(value) is not int or of_text:
            is_text = texts and isinstance(value, str) and _INTEGER.fullmatch(value)
            if not is_text and not (isinstance(value, float) and value.is_integer()):
                raise ValueRejectedError(refusal)
            value = int(value)
        if not least <= value <= most:
            raise ValueRejectedError(refusal)
        return int(value)

    return convert


def _float(single: bool) -> Convert:
    def convert(value: Any) -> float:
        if isinstance(value, str):
            if value in _UNUSUAL:
                return _UNUSUAL[value]
            if not _NUMBER.fullmatch(value):
                raise ValueRejectedError("want a number")
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueRejectedError("want a number")
        try:
            number = float(value)
        except OverflowError:
            raise ValueRejectedError("is beyond what a double holds") from None
        if math.isinf(number) or (single and abs(number) > FLOAT_MAX):
            raise ValueRejectedError(f"is beyond what a {'float' if single else 'double'} holds")
        return number

    return convert


def _enum(enum: Any) -> Convert:
    if enum.full_name == "google.protobuf.NullValue":

        def null(value: Any) -> int:
            if value is not None:
                raise ValueRejectedError("want null")
            return 0

        return null
    numbers: dict[str, int] = {value.name: value.number for value in enum.values}
    names = list(numbers)
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")

    def convert(value: Any) -> int:
        if isinstance(value, str) and value in numbers:
            return numbers[value]
        raise ValueRejectedError(f"want one of {listed}")

    return convert


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueRejectedError("want true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueRejectedError("want a string")
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, str) and _BASE64.fullmatch(value):
        bare = value.rstrip("=").translate(str.maketrans("-_", "+/"))
        try:
            return base64.b64decode(bare + "=" * (-len(bare) % 4))
        except binascii.Error:
            pass
    raise ValueRejectedError("want bytes in base64")
