"""Bundles a JSON Schema with the registered types that it refers to.

``{"$ref": "../customer/1.0.0.json"}`` is a relative path in the registry's folder, so editors and other validators
resolve it, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from balog.registry.names import is_type, is_version
from balog.registry.schema import InvalidSchemaError, Schema
from balog.registry.subschemas import copy_schema, subschemas

_OTHER = re.compile(r"(?:\.\./|/v1/schemas/)?([^/#]+)/([^/#]+?)(?:\.json)?(#.*)?")
_OLD = ("draft-04", "draft-06", "draft-07")
_MOST_TYPES = 100


def bundle(schema: Schema, document: dict[str, Any], find: Callable[[str, str], dict[str, Any]]) -> dict[str, Any]:
    """Return a schema's document with each type that it refers to, directly or indirectly, below ``$defs``.

    Args:
        document: the decoded schema.
        find: returns the registered document of a type and version.

    Returns:
        The document itself if it refers to no other type.

    Raises:
        InvalidSchemaError: the schema refers to more than 100 types, or to a type of another draft.
    """
    if next(_references(document), None) is None:
        return document
    where = f"{schema.type}/{schema.version}" if schema.type else ""
    draft = document.get("$schema", "")
    keyword = "definitions" if any(old in str(draft) for old in _OLD) else "$defs"
    held: dict[str, Any] = {}
    waiting = list(dict.fromkeys(_references(document)))
    while waiting:
        type, version = waiting.pop()
        key = f"{type}@{version}"
        if key in held:
            continue
        if len(held) >= _MOST_TYPES:
            raise InvalidSchemaError(f"refers to more than {_MOST_TYPES} types", where)
        target = find(type, version)
        if target.get("$schema", draft) != draft and target.get("$schema"):
            raise InvalidSchemaError(f"refers to {type}/{version}, whose $schema is another one", where)
        waiting += _references(target)
        own = {name: inner for name, inner in target.items() if name not in ("$schema", "$id", "id")}
        held[key] = _relocate(own, f"#/{keyword}/{key}", keyword)
    root = _relocate(document, "#", keyword)
    return {**root, keyword: {**root.get(keyword, {}), **held}}


def _references(document: Any) -> Iterator[tuple[str, str]]:
    """Yield the types and versions that a document refers to."""
    for _, node in subschemas(document):
        if (target := _parse_reference(node.get("$ref"))) is not None:
            yield target[0], target[1]


def _parse_reference(reference: Any) -> tuple[str, str, str] | None:
    match = _OTHER.fullmatch(reference) if isinstance(reference, str) else None
    if match is None or not is_type(match[1]) or not is_version(match[2]):
        return None
    return match[1], match[2], (match[3] or "#")[1:]


def _relocate(document: Any, root: str, keyword: str) -> Any:
    """Copy a document and point its references to where their targets are in the bundle."""

    def change(node: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
        reference = original.get("$ref")
        if (target := _parse_reference(reference)) is not None:
            node["$ref"] = f"#/{keyword}/{target[0]}@{target[1]}{target[2]}"
        elif isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
            node["$ref"] = root + reference[1:]
        return node

    return copy_schema(document, change)
