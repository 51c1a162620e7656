"""Schemas of records, from the schemas of an OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.tap.errors import SchemaError
from balog.tap.projects.documents import ApiDocument
from balog.tap.schema.flattening import flatten
from balog.tap.schema.references import resolve_target

_KEPT = ("anyOf", "oneOf", "allOf")
_TIMES = frozenset({"date-time", "date"})
_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_MAX_TEXT = 500


def record_schema(document: ApiDocument, node: Any) -> dict[str, Any]:
    """Return the schema of a record with all references resolved: types, formats of times and descriptions.

    Limits, patterns and enumerations are left out, because many sources break them; and ``required``, so that
    properties can be deselected.

    Raises:
        SchemaError: a reference has no target, or the schema is invalid or too large.
    """
    schema = flatten(_structure(resolve_target(document.documents, document.target(node), depth=1)))
    if "properties" not in schema:
        raise SchemaError("is not the schema of an object with properties")
    return {"type": "object", **{name: value for name, value in schema.items() if name not in ("type", "description")}}


def _structure(schema: Any, depth: int = 0) -> Any:
    if not isinstance(schema, Mapping):
        return {}
    structure: dict[str, Any] = {}
    kinds = _kinds(schema)
    if kinds:
        structure["type"] = kinds[0] if len(kinds) == 1 else kinds
    if isinstance(schema.get("description"), str) and schema["description"].strip():
        structure["description"] = " ".join(schema["description"].split())[:_MAX_TEXT]
    if schema.get("format") in _TIMES and "string" in kinds:
        structure["format"] = schema["format"]
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        structure["properties"] = {
            name: _structure(value, depth + 1)
            for name, value in properties.items()
            if not (isinstance(value, Mapping) and value.get("writeOnly") is True)
        }
    if isinstance(schema.get("items"), Mapping):
        structure["items"] = _structure(schema["items"], depth + 1)
    if isinstance(schema.get("additionalProperties"), Mapping):
        structure["additionalProperties"] = _structure(schema["additionalProperties"], depth + 1)
    for keyword in _KEPT:
        parts = schema.get(keyword)
        if isinstance(parts, list) and parts:
            # A record may match several alternatives once their limits are gone.
            name = "anyOf" if keyword == "oneOf" else keyword
            structure[name] = [_structure(part, depth + 1) for part in parts]
    return _with_null(structure) if schema.get("nullable") is True else structure


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else list(kind) if isinstance(kind, list) else []
    if not kinds and isinstance(schema.get("properties"), Mapping):
        kinds = ["object"]
    return [each for each in kinds if each in _TYPES]


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": kinds if "null" in kinds else ["null", *kinds]}
    return {"anyOf": [{"type": "null"}, schema]} if schema else schema
