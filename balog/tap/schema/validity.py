"""Validity of schemas: whether a document is a JSON Schema, within limits of size and depth."""

from __future__ import annotations

from typing import Any

import msgspec

from balog.common.text import cut, suggest
from balog.tap.errors import SchemaError
from balog.tap.json_schema.keywords import ALL_TYPES, SCHEMA_WORDS, SHAPES, Steps, subschemas

MAX_BYTES = 4 << 20
"""Maximum size of a file, in bytes."""
MAX_DEPTH = 100
"""Maximum nesting of objects and lists in a document."""
MAX_NODES = 10_000
"""Maximum number of schemas in a schema with resolved references."""


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
    for count, (steps, node) in enumerate(subschemas(schema), 1):
        if count > MAX_NODES:
            raise SchemaError(f"more than {MAX_NODES} schemas in one", source)
        if isinstance(node, bool):
            continue
        if not isinstance(node, dict):
            raise fault(f"expected {SCHEMA_WORDS}; found {_quoted(node)}", source, steps)
        for name, value in node.items():
            words, is_right = SHAPES.get(name, ("", None))
            if is_right is not None and not is_right(value):
                raise fault(f"expected {words}; found {_quoted(value)}", source, (*steps, name))
        if "type" in node:
            _check_type(node["type"], source, (*steps, "type"))


def _check_type(value: Any, source: str, steps: Steps) -> None:
    names = value if isinstance(value, list) else [value]
    if not names:
        raise fault("expected at least one type", source, steps)
    for name in names:
        if not isinstance(name, str) or name not in ALL_TYPES:
            raise fault(f"{_quoted(name)} is not a type{suggest(str(name), ALL_TYPES)}", source, steps)
    if len(set(names)) < len(names):
        raise fault("a type occurs twice", source, steps)


def _quoted(value: Any) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        text = type(value).__name__
    return cut(text, 60)
