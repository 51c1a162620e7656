"""Tolerant reading of schema keywords: malformed values count as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ALL = ("null", "boolean", "integer", "number", "string", "array", "object")
COMBINING = ("allOf", "anyOf", "oneOf", "not", "if")
"""Keywords with schemas for the value itself."""

ASKS = frozenset(
    (
        *("properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties"),
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "enum", "const"),
        *("format", "pattern", "minLength", "maxLength"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)
"""Keywords that restrict a value, except those in ``COMBINING``."""


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the JSON types that a schema allows; all types without ``type``."""
    declared = schema.get("type", _ALL)
    named = (declared,) if isinstance(declared, str) else declared if isinstance(declared, list | tuple) else ()
    return tuple(name for name in named if isinstance(name, str)) or _ALL


def listed(schema: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list of schemas of a keyword."""
    found = schema.get(name)
    return found if isinstance(found, list) else []


def required_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of required properties."""
    found = schema.get("required")
    return tuple(name for name in (found if isinstance(found, list) else ()) if isinstance(name, str))


def names_of(schema: Any) -> tuple[str, ...]:
    """Return the names of properties that a schema declares in any of its parts."""
    if not isinstance(schema, Mapping):
        return ()
    properties = schema.get("properties")
    names = dict.fromkeys(properties if isinstance(properties, Mapping) else ())
    names |= dict.fromkeys(required_of(schema))
    for part in (*listed(schema, "allOf"), *listed(schema, "anyOf"), *listed(schema, "oneOf")):
        names |= dict.fromkeys(names_of(part))
    for part in (schema.get("if"), schema.get("then"), schema.get("else")):
        names |= dict.fromkeys(names_of(part))
    return tuple(names)
