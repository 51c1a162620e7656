"""Every change of a field's type: where the comparison finds no break, each message is read as what it was."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor as Field

from balog.common.errors import EventError
from balog.registry.comparing.wire import compare_wire
from balog.registry.protobuf import compile_proto
from balog.registry.protobuf.message import CompiledMessage
from balog.registry.protobuf.schema import INTEGERS
from balog.registry.schema import Schema

_TYPES = (
    "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",
    "float", "double", "string", "bytes", "Open", "Inner", "Other",
)  # fmt: skip
_REST = (
    " enum Open { ZERO = 0; ONE = 1; TWO = 2; } message Inner { int32 n = 1; string s = 2; }"
    " message Other { int64 n = 1; bytes s = 2; }"
)


_KINDS = [f"{label}{name}" for label in ("", "repeated ") for name in _TYPES]
_FILE = 'syntax = "proto3";' + _REST + " ".join(f"message A{n} {{ {kind} a = 1; }}" for n, kind in enumerate(_KINDS))


def schema(kind: str) -> Schema:
    return Schema("a", "1.0.0", "protobuf", _FILE.encode(), f"A{_KINDS.index(kind)}")


def values(field: Any) -> list[Any]:
    """Give the values of a type that are most likely to come out wrong elsewhere."""
    if field.type in INTEGERS:
        least, most = INTEGERS[field.type]
        return [
            value for value in (least, -1, 1, 2, 127, (1 << 31), (1 << 32), most) if value and least <= value <= most
        ]
    if field.type == Field.TYPE_ENUM:
        return [1, 2]
    if field.message_type is not None:
        kind = message_factory.GetMessageClass(field.message_type)
        large = [kind(n=1 << 40)] if field.message_type.name == "Other" else []
        return [kind(n=-1), kind(n=5), *large]
    return {
        Field.TYPE_BOOL: [True],
        Field.TYPE_STRING: ["a", "\n\x00", "é", "\x08\x01"],
        Field.TYPE_BYTES: [b"a", b"\xff", b"\x08\x01"],
        Field.TYPE_FLOAT: [1.5, -1.0],
        Field.TYPE_DOUBLE: [1.5, -1.0],
    }[field.type]


def meaning(value: Any) -> Any:
    """Give a value as what it means, whatever type it is read as."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return int(value)
    return value.SerializeToString() if hasattr(value, "DESCRIPTOR") else value


def sent(kind: Any, values: list[Any]) -> bytes:
    message = kind()
    field = message.DESCRIPTOR.fields_by_name["a"]
    if field.is_repeated:
        message.a.extend(values)
    elif field.message_type is not None:
        message.a.CopyFrom(values[0])
    else:
        message.a = values[0]
    return bytes(message.SerializeToString())


def comes_through(reader: CompiledMessage, wire: bytes, values: list[Any]) -> bool:
    try:
        reader.read(wire)
    except EventError:
        return False
    read = message_factory.GetMessageClass(reader.descriptor).FromString(wire)
    got = list(read.a) if read.DESCRIPTOR.fields_by_name["a"].is_repeated else [read.a] if read.ListFields() else []
    return [meaning(value) for value in got] == [meaning(value) for value in values]


@pytest.mark.parametrize("old", _KINDS)
def test_without_a_finding_every_value_is_read_as_it_was(old: str) -> None:
    writer = compile_proto(_FILE.encode(), schema(old).message)
    kind, field = message_factory.GetMessageClass(writer.descriptor), writer.descriptor.fields_by_name["a"]
    for new in _KINDS:
        found = [finding for finding in compare_wire(schema(old), schema(new), "backward") if finding.breaks]
        reader = compile_proto(_FILE.encode(), schema(new).message)
        lists = [[value, value] if field.is_repeated else [value] for value in values(field)]
        wrong = [given for given in lists if not comes_through(reader, sent(kind, given), given)]
        assert found or not wrong, f"{old} as {new} breaks for {wrong}"
        assert wrong or not found, f"{old} as {new} breaks for none of {lists}"
