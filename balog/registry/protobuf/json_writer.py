"""Writes a message as stored JSON: ProtoJSON (protobuf.dev/programming-guides/json), with defaults.

A field without presence (a plain ``int32`` of proto3, a list, a map) is also written if it is 0, "" or empty, so that a
table holds the value and not NULL.
"""

from __future__ import annotations

import math
import struct
from binascii import b2a_base64
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from balog.registry.protobuf.descriptors import WRAPPERS, is_map

MAX_DEPTH = 64
"""Limit of nested messages; the payload is level 1."""

Write = Callable[[Any, int], Any]
"""Arguments: a message and its depth. Returns plain data."""

_INT64 = (
    FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_SINT64, FieldDescriptor.TYPE_FIXED64,
    FieldDescriptor.TYPE_SFIXED64,
)  # fmt: skip
_FLOAT = struct.Struct("<f")


class UnwritableError(ValueError):
    """A value that ProtoJSON cannot represent."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str | int] = []


def make_writer(message: Any) -> Write:
    """Return a function that writes messages of a descriptor. It raises ``UnwritableError``."""
    return _message(message, {})


def _message(message: Any, made: dict[str, Write]) -> Write:
    name = message.full_name
    if name in WRAPPERS:
        scalar = _scalar(message.fields_by_name["value"])
        return lambda value, depth: scalar(value.value, depth)
    if name in _OWN:
        return _OWN[name]
    if name not in made:
        # A recursive message refers to its own writer, which is not complete yet.
        made[name] = lambda value, depth: made[name](value, depth)  # noqa: PLW0108
        made[name] = _plain(message, made)
    return made[name]


def _plain(message: Any, made: dict[str, Write]) -> Write:
    fields = [(field.name, field.json_name, _field(field, made), field.has_presence) for field in message.fields]

    def write(value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise UnwritableError(f"nested more than {MAX_DEPTH} deep")
        document = {}
        key: str = ""
        try:
            for name, key, convert, optional in fields:
                if not optional or value.HasField(name):
                    document[key] = convert(getattr(value, name), depth)
        except UnwritableError as error:
            error.steps.insert(0, key)
            raise
        except UnicodeDecodeError:
            refusal = UnwritableError("not UTF-8")
            refusal.steps.append(key)
            raise refusal from None
        return document

    return write


def _field(field: Any, made: dict[str, Write]) -> Write:
    if is_map(field):
        return _map(field, made)
    one = _scalar(field) if field.message_type is None else _message(field.message_type, made)
    deeper = 0 if field.message_type is None else 1
    if not field.is_repeated:
        return (lambda value, depth: one(value, depth + 1)) if deeper else one
    if not deeper and one is _same:
        return lambda value, depth: list(value)
    return lambda value, depth: _items(one, value, depth + deeper)


def _map(field: Any, made: dict[str, Write]) -> Write:
    kind = field.message_type.fields_by_name["value"]
    one = _scalar(kind) if kind.message_type is None else _message(kind.message_type, made)
    deeper = 0 if kind.message_type is None else 1
    key_type = field.message_type.fields_by_name["key"].type
    texts: dict[int, Callable[[Any], str]] = {
        FieldDescriptor.TYPE_BOOL: lambda key: "true" if key else "false",
        FieldDescriptor.TYPE_STRING: lambda key: key,
    }
    name = texts.get(key_type) or str

    def write(value: Any, depth: int) -> Any:
        written: dict[str, Any] = {}
        for key in value:
            try:
                written[name(key)] = one(value[key], depth + deeper)
            except UnwritableError as error:
                error.steps.insert(0, name(key))
                raise
        return written

    return write


def _same(value: Any, depth: int) -> Any:
    return value


def _scalar(field: Any) -> Write:
    kind = field.type
    if kind in _INT64:
        return lambda value, depth: str(value)
    if kind == FieldDescriptor.TYPE_BYTES:
        return lambda value, depth: b2a_base64(value, newline=False).decode("ascii")
    if kind == FieldDescriptor.TYPE_DOUBLE:
        return lambda value, depth: value if math.isfinite(value) else _unusual(value)
    if kind == FieldDescriptor.TYPE_FLOAT:
        return lambda value, depth: _shortest(value) if math.isfinite(value) else _unusual(value)
    if kind == FieldDescriptor.TYPE_ENUM:
        return _enum(field.enum_type)
    return _same


def _unusual(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _shortest(value: float) -> float:
    """Return the double with the fewest digits that rounds to this 32-bit float."""
    for digits in (6, 7, 8):
        shorter = float(f"{value:.{digits}g}")
        try:
            if _FLOAT.unpack(_FLOAT.pack(shorter))[0] == value:
                return shorter
        except OverflowError:  # rounded up beyond the largest
            continue
    return float(f"{value:.9g}")


def _enum(enum: Any) -> Write:
    if enum.full_name == "google.protobuf.NullValue":
        return lambda value, depth: None
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)

    def write(value: Any, depth: int) -> Any:
        name = names.get(value)
        if name is None:
            raise UnwritableError(f"is no value of {enum.full_name}")
        return name

    return write


def _json_string(kind: str) -> Write:
    def write(value: Any, depth: int) -> Any:
        try:
            return value.ToJsonString()
        except (ValueError, OverflowError):
            raise UnwritableError(f"is out of the range of a {kind}") from None

    return write


def _value(value: Any, depth: int) -> Any:
    which = value.WhichOneof("kind")
    if which is None or which == "null_value":
        return None
    if depth > MAX_DEPTH and which in ("struct_value", "list_value"):
        raise UnwritableError(f"nested more than {MAX_DEPTH} deep")
    if which == "struct_value":
        return _struct(value.struct_value, depth + 1)
    if which == "list_value":
        return _list(value.list_value, depth + 1)
    found = getattr(value, which)
    if which == "number_value" and not math.isfinite(found):
        raise UnwritableError("is no number that JSON has")
    return found


def _struct(value: Any, depth: int) -> Any:
    written = {}
    for key in value.fields:
        try:
            written[key] = _value(value.fields[key], depth)
        except UnwritableError as error:
            error.steps.insert(0, key)
            raise
    return written


def _list(value: Any, depth: int) -> Any:
    return _items(_value, value.values, depth)


def _items(write: Write, values: Any, depth: int) -> list[Any]:
    written: list[Any] = []
    try:
        for item in values:
            written.append(write(item, depth))
    except UnwritableError as error:
        error.steps.insert(0, len(written))
        raise
    return written


_OWN: dict[str, Write] = {
    "google.protobuf.Timestamp": _json_string("Timestamp"),
    "google.protobuf.Duration": _json_string("Duration"),
    "google.protobuf.FieldMask": _json_string("FieldMask"),
    "google.protobuf.Value": _value,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
}
