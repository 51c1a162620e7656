"""The keywords that contain schemas, in drafts 4 to 2020-12, so that data is not mistaken for schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Steps = tuple[str | int, ...]
"""A place in a document: names of members and indexes of items."""

_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_MAPS = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})

IN_PLACE = frozenset({"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""Keywords whose schemas apply to the value itself, not to a part of it."""

ANNOTATIONS = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
)
"""Keywords that describe a value without restricting it."""


def children(node: dict[str, Any]) -> Iterator[tuple[Steps, Any]]:
    """Yield the direct subschemas of a schema with their steps."""
    for name, value in node.items():
        if name in _MANY and isinstance(value, list):
            for index, item in enumerate(value):
                yield (name, index), item
        elif name in _MAPS and isinstance(value, dict):
            for key, item in value.items():
                if not (name == "dependencies" and isinstance(item, list)):
                    yield (name, key), item
        elif name in _ONE:
            yield (name,), value


def rebuilt(node: dict[str, Any], make: Callable[[Any, Steps], Any]) -> dict[str, Any]:
    """Return a copy of a schema with ``make(inner, steps)`` in place of each direct subschema."""
    made: dict[str, Any] = {}
    for name, value in node.items():
        if name in _MANY and isinstance(value, list):
            made[name] = [make(item, (name, index)) for index, item in enumerate(value)]
        elif name in _MAPS and isinstance(value, dict):
            made[name] = {
                key: item if name == "dependencies" and isinstance(item, list) else make(item, (name, key))
                for key, item in value.items()
            }
        elif name in _ONE:
            made[name] = make(value, (name,))
        else:
            made[name] = value
    return made
