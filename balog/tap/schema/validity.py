"""Validity of schemas: whether a document is a JSON Schema, within limits of size and depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from balog.suggestions import suggest
from balog.tap.errors import SchemaError
from balog.tap.schema.keywords import Steps, children

MAX_BYTES = 4 << 20
"""Maximum size of a file, in bytes."""
MAX_DEPTH = 100
"""Maximum nesting of objects and lists in a document."""
MAX_NODES = 10_000
"""Maximum number of schemas in a schema with resolved references."""

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

_OBJECT = "an object"
_SCHEMA = "a schema: an object, true or false"
_SHAPES: dict[str, tuple[str, Callable[[Any], bool]]] = {}


def _shape(words: str, is_right: Callable[[Any], bool], *names: str) -> None:
    _SHAPES.update(dict.fromkeys(names, (words, is_right)))


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


_shape(_OBJECT, lambda value: isinstance(value, dict), "properties", "patternProperties", "$defs", "definitions")
_shape(_OBJECT, lambda value: isinstance(value, dict), "dependencies", "dependentSchemas", "dependentRequired")
_shape("a list of names", _is_names, "required")
_shape("a list", lambda value: isinstance(value, list), "enum")
_shape(
    "a list of schemas, not an empty one",
    lambda value: isinstance(value, list) and len(value) > 0,
    "allOf",
    "anyOf",
    "oneOf",
    "prefixItems",
)
_shape("a schema or a list of schemas", lambda value: _is_schema(value) or isinstance(value, list), "items")
_shape(_SCHEMA, _is_schema, "additionalItems", "additionalProperties", "contains", "not", "if", "then", "else")
_shape(_SCHEMA, _is_schema, "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema")
_shape("a number", _is_number, "minimum", "maximum")
_shape("a number above 0", lambda value: _is_number(value) and value > 0, "multipleOf")
_shape("a number", lambda value: isinstance(value, bool) or _is_number(value), "exclusiveMinimum", "exclusiveMaximum")
_shape("a whole number, 0 or more", _is_count, "minLength", "maxLength", "minItems", "maxItems", "minContains")
_shape("a whole number, 0 or more", _is_count, "minProperties", "maxProperties", "maxContains")
_shape("true or false", lambda value: isinstance(value, bool), "uniqueItems")
_shape("a text", lambda value: isinstance(value, str), "$ref", "$dynamicRef", "$id", "$anchor", "$schema")
_shape("a text", lambda value: isinstance(value, str), "format", "pattern", "title", "description")


def fault(reason: str, source: str = "", steps: Steps = ()) -> SchemaError:
    """Return an error with the document and the place."""
    from balog.registry.reasons import json_path  # imported only for errors: the registry is slow to import

    return SchemaError(reason, source, json_path(steps))


def decode(data: bytes, source: str) -> Any:
    """Decode a document that is, or contains, JSON Schemas.

    Raises:
        SchemaError: the document is not JSON, larger than 4 MiB, or nested deeper than 100.
    """
    if len(data) > MAX_BYTES:
        raise SchemaError(f"larger than {MAX_BYTES >> 20} MiB; is this the right file?", source)
    try:
        found = msgspec.json.decode(data.decode("utf-8-sig"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SchemaError(f"not JSON: {str(error).removeprefix('JSON is malformed: ')}", source) from None
    except RecursionError:
        raise SchemaError(f"nested deeper than {MAX_DEPTH}", source) from None
    check_depth(found, source)
    return found


def check_depth(document: Any, source: str = "") -> None:
    """Raise if a document is nested too deep for recursive functions.

    Raises:
        SchemaError: the document is nested deeper than 100.
    """
    level, depth = [document] if isinstance(document, (dict, list)) else [], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise SchemaError(f"nested deeper than {MAX_DEPTH}", source)
        below = (inner for node in level for inner in (node.values() if isinstance(node, dict) else node))
        # Schemas made in Python can share objects.
        level = list({id(inner): inner for inner in below if isinstance(inner, (dict, list))}.values())


def check(schema: Any, source: str = "") -> None:
    """Raise at the first error of a JSON Schema of drafts 4 to 2020-12.

    Raises:
        SchemaError: the value of a keyword has the wrong type, or there are more than 10,000 schemas.
    """
    check_depth(schema, source)
    nodes: list[tuple[Steps, Any]] = [((), schema)]
    count = 0
    while nodes:
        steps, node = nodes.pop()
        count += 1
        if count > MAX_NODES:
            raise SchemaError(f"more than {MAX_NODES} schemas in one", source)
        if isinstance(node, bool):
            continue
        if not isinstance(node, dict):
            raise fault(f"want {_SCHEMA}; found {_quoted(node)}", source, steps)
        for name, value in node.items():
            want, is_right = _SHAPES.get(name, ("", None))
            if is_right is not None and not is_right(value):
                raise fault(f"want {want}; found {_quoted(value)}", source, (*steps, name))
        if "type" in node:
            _check_type(node["type"], source, (*steps, "type"))
        nodes += [((*steps, *inner), child) for inner, child in children(node)][::-1]


def _check_type(value: Any, source: str, steps: Steps) -> None:
    names = value if isinstance(value, list) else [value]
    if not names:
        raise fault("want at least one type", source, steps)
    for name in names:
        if not isinstance(name, str) or name not in _TYPES:
            raise fault(f"{_quoted(name)} is not a type{suggest(str(name), _TYPES)}", source, steps)
    if len(set(names)) < len(names):
        raise fault("a type occurs twice", source, steps)


def _quoted(value: Any) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= 60 else text[:59] + "…"
