"""Compatibility of protobuf's scalar types: whether a reader of one type decodes every value of another.

See protobuf.dev/programming-guides/proto3#updating and /encoding. A change is compatible if every value is preserved;
silent truncation (int64 read as int32) is not.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from balog.registry.protobuf.schema import INTEGERS

_PLAIN_INTEGERS = (Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64)
_VARINTS = {Field.TYPE_BOOL: (0, 1), **{kind: INTEGERS[kind] for kind in _PLAIN_INTEGERS}}
_WIRE = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"), "a varint"),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), "4 bytes"),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), "8 bytes"),
    **dict.fromkeys(("string", "bytes", "message"), "a length and bytes"),
    "group": "what is between two marks",
}


def misread(writer: Any, reader: Any) -> str:
    """Compare two scalar types. Return "" if every value is preserved. The caller descends into messages."""
    old, new = _name(writer.type), _name(reader.type)
    change = f"{_type_name(writer)} is read as {_type_name(reader)}"
    if _WIRE[old] != _WIRE[new]:
        return f"{change}, {_WIRE[old]} as {_WIRE[new]}"
    if old == "enum" and new == "enum":
        return _enums(writer.enum_type, reader.enum_type)
    if old == new or (old, new) in (("sint32", "sint64"), ("string", "bytes"), ("message", "bytes")):
        return ""
    if _is_varint(writer) and _is_varint(reader):
        return f"{change}, which has not all of its values" if _loses_values(writer, reader) else ""
    return f"{change}, in which the same bytes mean something else"


def _name(kind: int) -> str:
    return str(FieldDescriptorProto.Type.Name(kind)).removeprefix("TYPE_").lower()


def _type_name(field: Any) -> str:
    if field.message_type is not None:
        return str(field.message_type.full_name)
    return str(field.enum_type.full_name if field.enum_type is not None else _name(field.type))


def _is_varint(field: Any) -> bool:
    return field.type in _VARINTS or field.type == Field.TYPE_ENUM


def _loses_values(writer: Any, reader: Any) -> bool:
    """Return whether a varint type has values that another one does not have."""
    if reader.type == Field.TYPE_ENUM:
        return _VARINTS[writer.type][1] > 1 or not {0, 1} <= {value.number for value in reader.enum_type.values}
    if writer.type == Field.TYPE_ENUM:
        values = [value.number for value in writer.enum_type.values]
    else:
        values = list(_VARINTS[writer.type])
    least, most = _VARINTS[reader.type]
    return not all(least <= value <= most for value in values)


def _enums(old: Any, new: Any) -> str:
    names: dict[int, set[str]] = {}
    for value in new.values:
        names.setdefault(value.number, set()).add(value.name)
    numbers = {value.name: value.number for value in new.values}
    for value in old.values:
        if numbers.get(value.name, value.number) != value.number and value.name not in names.get(value.number, ()):
            return f"{value.name} is {value.number}, and in the other {new.full_name} it is {numbers[value.name]}"
        if value.number not in names and new.is_closed:
            return f"{value.name} is {value.number}, and {new.full_name} has no such value"
    return ""
