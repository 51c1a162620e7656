"""Describes the stored JSON of a message as JSON Schema (draft 2020-12), for tables, pages and comparisons.

The schema covers the JSON mapping. Objects are open: a field that a later version adds does not break the schema,
because readers of protobuf skip unknown fields. ``check`` validates against one version and rejects such a field. The
schema does not express protovalidate's rules, nor that a oneof has one value.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field

from balog.registry.protobuf.descriptors import WRAPPERS, is_map, is_plain, reachable_messages

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

_NUMBER = r"^(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity)$"
_INTEGER = r"^(0|-?[1-9][0-9]{0,19})$"
_OWN: dict[str, dict[str, Any]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?[0-9]{1,12}(\.[0-9]{1,9})?s$"},
    "google.protobuf.FieldMask": {"type": "string"},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.Value": {},
    "google.protobuf.ListValue": {"type": "array"},
}


def make_json_schema(message: Any, type_fields: list[str], *, is_open: bool = True) -> dict[str, Any]:
    """Return the JSON Schema of a message's payloads.

    Args:
        type_fields: names of string members that a payload has in addition to the fields of the message.
        is_open: objects may have members that they do not declare.

    Returns:
        The schema of the payload; other messages are below ``$defs`` by their full names.
    """
    definitions = {
        here.full_name: _object(here, message.full_name, is_open)
        for here in reachable_messages(message)
        if is_plain(here)
    }
    root = definitions.pop(message.full_name)
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": message.full_name,
        **root,
        "properties": {**{name: {"type": "string"} for name in type_fields}, **root["properties"]},
    }
    if definitions:
        document["$defs"] = definitions
    return document


def _value(field: Any, root: str) -> dict[str, Any]:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return {"type": "object", **_keys(key), "additionalProperties": _one(value, root)}
    return {"type": "array", "items": _one(field, root)} if field.is_repeated else _one(field, root)


def _object(message: Any, root: str, is_open: bool) -> dict[str, Any]:
    required_fields = [field.json_name for field in message.fields if field.is_required]
    properties = {}
    for field in message.fields:
        schema = _value(field, root)
        properties[field.json_name] = schema if field.is_required else _nullable(schema)
    document: dict[str, Any] = {"type": "object", "properties": properties}
    if not is_open:
        document["additionalProperties"] = False
    if required_fields:
        document["required"] = required_fields
    return document


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if not schema or schema.get("type") == "null":
        return schema
    if "$ref" in schema or "const" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if "enum" in schema:
        schema = {**schema, "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]}


def _keys(field: Any) -> dict[str, Any]:
    if field.type == Field.TYPE_STRING:
        return {}
    if field.type == Field.TYPE_BOOL:
        return {"propertyNames": {"enum": ["true", "false"]}}
    return {"propertyNames": {"pattern": _INTEGER}}


def _one(field: Any, root: str) -> dict[str, Any]:
    if field.message_type is not None:
        name = field.message_type.full_name
        if name in WRAPPERS:
            return _one(field.message_type.fields_by_name["value"], root)
        if name in _OWN:
            return dict(_OWN[name])
        return {"$ref": "#" if name == root else f"#/$defs/{name}"}
    kind = field.type
    if kind in INTEGERS:
        least, most = INTEGERS[kind]
        integer = {"type": "integer", "minimum": least, "maximum": most}
        return {"anyOf": [integer, {"type": "string", "pattern": _INTEGER}]} if most > 1 << 32 else integer
    if kind in (Field.TYPE_DOUBLE, Field.TYPE_FLOAT):
        number: dict[str, Any] = {"type": "number"}
        if kind == Field.TYPE_FLOAT:
            number.update(minimum=-FLOAT_MAX, maximum=FLOAT_MAX)
        return {"anyOf": [number, {"type": "string", "pattern": _NUMBER}]}
    if kind == Field.TYPE_ENUM:
        if field.enum_type.full_name == "google.protobuf.NullValue":
            return {"type": "null"}
        return {"type": "string", "enum": [value.name for value in field.enum_type.values]}
    return {
        Field.TYPE_BOOL: {"type": "boolean"},
        Field.TYPE_STRING: {"type": "string"},
        Field.TYPE_BYTES: {"type": "string", "contentEncoding": "base64", "pattern": "^[A-Za-z0-9+/_-]*={0,2}$"},
    }[kind]
