"""The subschemas of a JSON Schema: finding them, and following and changing references to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_DATA = frozenset({"enum", "const", "default", "examples"})
"""Keywords whose values are data."""

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
"""Keywords whose values map names to schemas."""

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def type_of(value: Any) -> str:
    """Return the JSON type of a decoded value; a number without a fraction is an integer."""
    return _TYPES.get(type(value), "null")


def subschemas(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each subschema that is an object, with its path in the document (``$.properties.id``)."""
    rest: list[tuple[Any, str, bool]] = [(document, "$", True)]
    while rest:
        node, path, is_schema = rest.pop()
        if isinstance(node, dict):
            if is_schema:
                yield path, node
            for name, inner in node.items():
                if isinstance(inner, (dict, list)) and not (is_schema and name in _DATA):
                    rest.append((inner, f"{path}.{name}", not (is_schema and name in _MAPS)))
        elif isinstance(node, list):
            rest += ((inner, f"{path}[{number}]", True) for number, inner in enumerate(node))


def relocate(node: Any, change: Callable[[str], str], is_schema: bool = True) -> Any:
    """Copy a schema, or an object of schemas by name, and change each ``$ref``."""
    if isinstance(node, list):
        return [relocate(inner, change) for inner in node]
    if not isinstance(node, dict):
        return node
    copy = {
        name: inner
        if is_schema and name in _DATA
        else relocate(inner, change, not (is_schema and name in _MAPS and isinstance(inner, dict)))
        for name, inner in node.items()
    }
    if is_schema and isinstance(reference := node.get("$ref"), str):
        copy["$ref"] = change(reference)
    return copy


def resolve(document: Any, reference: Any) -> Any:
    """Return the target of a ``$ref`` into the document (``#/$defs/a``); None for any other reference."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node = document
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node
