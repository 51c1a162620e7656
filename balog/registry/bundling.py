"""A JSON Schema that refers to other registered types, as one document that holds them.

``{"$ref": "../customer/1.0.0.json"}`` is the file beside it in a folder, as editors and other validators read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from balog.registry.names import is_type, is_version
from balog.registry.schema import InvalidSchemaError, Schema
from balog.registry.subschemas import copy_schema, subschemas

__all__ = ["bundle"]

_OTHER = re.compile(r"(?:\.\./|/v1/schemas/)?([^/#]+)/([^/#]+?)(?:\.json)?(#.*)?")
_OLD = ("draft-04", "draft-06", "draft-07")
_MOST_TYPES = 100


def bundle(schema: Schema, document: dict[str, Any], find: Callable[[str, str], dict[str, Any]]) -> dict[str, Any]:
    """Return a schema's document with each type that it refers to, directly or not, below ``$defs``.

    Args:
        document: decoded.
        find: gives the document of a type's version as it is registered.

    Returns:
        The document itself where it refers to no other type.

    Raises:
        InvalidSchemaError: it refers to more than 100 types, or to one of another draft; what ``find`` raises.
    """
    if next(_others(document), None) is None:
        return document
    where = f"{schema.type}/{schema.version}" if schema.type else ""
    draft = document.get("$schema", "")
    place = "definitions" if any(old in str(draft) for old in _OLD) else "$defs"
    held: dict[str, Any] = {}
    waiting = list(dict.fromkeys(_others(document)))
    while waiting:
        type, version = waiting.pop()
        key = f"{type}@{version}"
        if key in held:
            continue
        if len(held) >= _MOST_TYPES:
            raise InvalidSchemaError(f"refers to more than {_MOST_TYPES} types", where)
        other = find(type, version)
        if other.get("$schema", draft) != draft and other.get("$schema"):
            raise InvalidSchemaError(f"refers to {type}/{version}, whose $schema is another one", where)
        waiting += _others(other)
        own = {name: inner for name, inner in other.items() if name not in ("$schema", "$id", "id")}
        held[key] = _relocate(own, f"#/{place}/{key}", place)
    found = _relocate(document, "#", place)
    return {**found, place: {**found.get(place, {}), **held}}


def _others(document: Any) -> Iterator[tuple[str, str]]:
    """Yield the types and versions that a document refers to."""
    for _, node in subschemas(document):
        if (other := _other(node.get("$ref"))) is not None:
            yield other[0], other[1]


def _other(reference: Any) -> tuple[str, str, str] | None:
    found = _OTHER.fullmatch(reference) if isinstance(reference, str) else None
    if found is None or not is_type(found[1]) or not is_version(found[2]):
        return None
    return found[1], found[2], (found[3] or "#")[1:]


def _relocate(document: Any, root: str, place: str) -> Any:
    """Copy a document and point its references to where their targets are in the bundle."""

    def change(node: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
        reference = original.get("$ref")
        if (other := _other(reference)) is not None:
            node["$ref"] = f"#/{place}/{other[0]}@{other[1]}{other[2]}"
        elif isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
            node["$ref"] = root + reference[1:]
        return node

    return copy_schema(document, change)
