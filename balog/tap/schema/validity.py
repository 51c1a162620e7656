"""Validity of schemas: whether a document is a JSON Schema, within limits of size and depth."""

from __future__ import annotations

from functools import cache
from typing import Any

from balog.common.config.document import TOO_DEEP
from balog.common.config.json_text import parse_json
from balog.common.errors import ConfigError
from balog.common.text import suggest
from balog.tap.errors import SchemaError
from balog.tap.json_schema.keywords import ALL_TYPES, ANNOTATIONS, Steps, subschemas

_DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
)

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
        SchemaError: the document is not JSON, has a key twice, is larger than 4 MiB, or nested deeper than 100.
    """
    if len(data) > MAX_BYTES:
        raise SchemaError(f"larger than {MAX_BYTES >> 20} MiB; is this the right file?", source)
    try:
        document = parse_json(data, source)
    except ConfigError as error:
        reason = f"nested deeper than {MAX_DEPTH}" if error.reason == TOO_DEEP else error.reason
        raise SchemaError(reason, error.source) from None
    check_depth(document.data, source)
    for reason, path in document.problems:
        raise SchemaError(reason, source, path)
    return document.data


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
    """Raise at the first error of a JSON Schema, unless it is valid in draft 2020-12, 7 or 4.

    Raises:
        SchemaError: the schema is invalid in each of these drafts, or contains more than 10,000 schemas.
    """
    check_depth(schema, source)
    for count, (steps, node) in enumerate(subschemas(schema), 1):
        if count > MAX_NODES:
            raise SchemaError(f"more than {MAX_NODES} schemas in one", source)
        for name, value in node.items() if isinstance(node, dict) else ():
            if isinstance(value, tuple) and name not in ANNOTATIONS:
                raise fault("expected a list; found a tuple", source, (*steps, name))
    try:
        errors: list[Any] = [next(iter(validator.iter_errors(schema)), None) for validator in _validators()]
    except ValueError as error:  # a name that is not a text
        raise SchemaError(str(error), source) from None
    if all(errors):
        raise fault(_reason(errors[0]), source, tuple(errors[0].instance_path))


@cache
def _validators() -> list[Any]:
    """Return the validators of schemas by draft, the latest first."""
    import jsonschema_rs  # imported for the first schema

    return [jsonschema_rs.validator_for({"$schema": draft, "$ref": draft}, validate_formats=False) for draft in _DRAFTS]


def _reason(error: Any) -> str:
    from balog.registry.reasons import describe_error  # imported only for errors: the registry is slow to import

    if error.kind.name == "anyOf" and error.instance_path[-1:] == ["type"]:
        value = error.instance
        hint = suggest(value, ALL_TYPES) if isinstance(value, str) else ""
        return f"expected a type, or a list of different types; found {value!r:.60}{hint}"
    return describe_error(error)
