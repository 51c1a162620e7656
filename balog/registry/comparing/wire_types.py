"""Compatibility of protobuf's scalar types: whether a reader of one type decodes every value of another.

See protobuf.dev/programming-guides/proto3#updating and /encoding. A change is compatible if every value is preserved;
silent truncation (int64 read as int32) is not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor as Field

_VARINTS: dict[int, tuple[int, int]] = {
    Field.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    Field.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    Field.TYPE_UINT32: (0, (1 << 32) - 1),
    Field.TYPE_UINT64: (0, (1 << 64) - 1),
    Field.TYPE_BOOL: (0, 1),
}
_NAMES = {
    getattr(Field, f"TYPE_{name.upper()}"): name
    for name in (
        "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",
        "float", "double", "string", "bytes", "enum", "message", "group",
    )
}  # fmt: skip
_WIRE = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"), "a varint"),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), "4 bytes"),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), "8 bytes"),
    **dict.fromkeys(("string", "bytes", "message"), "a length and bytes"),
    "group": "what is between two marks",
}


class Misread(NamedTuple):
    """The reason, and a value of the writer's type that shows it: for an enum its number, for a message None."""

    reason: str
    value: Any


def misread(writer: Any, reader: Any) -> Misread | None:
    """Compare two scalar types. Return None if every value is preserved. The caller descends into messages."""
    old, new = _NAMES[writer.type], _NAMES[reader.type]
    change = f"{_type_name(writer)} is read as {_type_name(reader)}"
    if _WIRE[old] != _WIRE[new]:
        return Misread(f"{change}, {_WIRE[old]} as {_WIRE[new]}", sample(writer))
    if old == "enum" and new == "enum":
        return _enums(writer.enum_type, reader.enum_type)
    if old == new or (old, new) in (("sint32", "sint64"), ("string", "bytes"), ("message", "bytes")):
        return None
    if _is_varint(writer) and _is_varint(reader):
        value = _varint(writer, reader)
        return None if value is None else Misread(f"{change}, which has not all of its values", value)
    return Misread(f"{change}, in which the same bytes mean something else", _same_bits(old, new, writer))


def _type_name(field: Any) -> str:
    if field.message_type is not None:
        return str(field.message_type.full_name)
    return str(field.enum_type.full_name if field.enum_type is not None else _NAMES[field.type])


def sample(field: Any) -> Any:
    """Return a value of a field's type other than its default; None for a message."""
    kind = _NAMES[field.type]
    if kind in ("message", "group"):
        return None
    if kind == "enum":
        return next(
            (value.number for value in field.enum_type.values if value.number), field.enum_type.values[0].number
        )
    return {"bool": True, "string": "a", "bytes": b"a", "float": 1.5, "double": 1.5}.get(kind, 1)


def _is_varint(field: Any) -> bool:
    return field.type in _VARINTS or field.type == Field.TYPE_ENUM


def _varint(writer: Any, reader: Any) -> int | None:
    """Return a value that two varint types decode differently."""
    if reader.type == Field.TYPE_ENUM:
        known = {value.number for value in reader.enum_type.values}
        least, most = _VARINTS[writer.type]
        return (
            next(value for value in range(least if least else 1, most + 1) if value not in known)
            if most > 1
            else (None if {0, 1} <= known else 1)
        )
    if writer.type == Field.TYPE_ENUM:
        values = [value.number for value in writer.enum_type.values]
    else:
        values = list(_VARINTS[writer.type])
    least, most = _VARINTS[reader.type]
    return next((value for value in values if not least <= value <= most), None)


def _same_bits(old: str, new: str, writer: Any) -> Any:
    """Return a value that two types of one wire type decode differently."""
    if "float" in (old, new) or "double" in (old, new):
        return sample(writer)
    if "sint32" in (old, new) or "sint64" in (old, new):
        return 1 << 40 if (old, new) == ("sint64", "sint32") else sample(writer)  # zigzag on one side only
    if old in ("fixed32", "fixed64"):
        return (1 << int(old[-2:])) - 1
    if old in ("sfixed32", "sfixed64"):
        return -1
    if old == "bytes":
        return b"\xff"
    return sample(writer)  # text or bytes as a message


def _enums(old: Any, new: Any) -> Misread | None:
    names: dict[int, set[str]] = {}
    for value in new.values:
        names.setdefault(value.number, set()).add(value.name)
    numbers = {value.name: value.number for value in new.values}
    for value in old.values:
        if numbers.get(value.name, value.number) != value.number and value.name not in names.get(value.number, ()):
            reason = f"{value.name} is {value.number}, and in the other {new.full_name} it is {numbers[value.name]}"
            return Misread(reason, value.number)
        if value.number not in names and new.is_closed:
            return Misread(f"{value.name} is {value.number}, and {new.full_name} has no such value", value.number)
    return None
