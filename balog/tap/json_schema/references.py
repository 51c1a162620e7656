"""JSON pointers (RFC 6901) and the references of a schema into its own document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from balog.tap.errors import TapError
from balog.tap.json_schema.keywords import ANNOTATIONS

_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")
_NO_EFFECT = ANNOTATIONS | {"$defs", "$id", "$ref", "$schema", "definitions", "id"}


def follow(node: Any, pointer: str) -> Iterator[tuple[str | int, Any]]:
    """Yield each step of a pointer with the value that it leads to.

    Raises:
        LookupError: a step has no target; the message names the step and what there is instead.
    """
    way = ""
    for part in pointer.split("/")[1:]:
        key: str | int = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and part.isdecimal() and len(part) < 10 and int(part) < len(node):
            key = int(part)
        elif not isinstance(node, Mapping) or key not in node:
            has = (
                f"{len(node)} items" if isinstance(node, list) else ", ".join(node if isinstance(node, Mapping) else ())
            )
            raise LookupError(f"#{way} has no {key!r}; it has {has[:200] or 'nothing'}")
        way += f"/{key}"
        node = node[key]
        yield key, node


def target_of(reference: str, document: Any) -> Any:
    """Return the part of a document that a reference such as ``#/$defs/address`` names.

    Raises:
        LookupError: there is no such part.
    """
    pointer = unquote(reference.removeprefix("#"))
    if pointer[:1] not in ("", "/"):
        raise LookupError("it is the name of a schema, not its place")
    nodes = [node for _, node in follow(document, pointer)]
    return nodes[-1] if nodes else document


def keywords_with_reference(schema: Mapping[str, Any], document: Any) -> dict[str, Any]:
    """Return the keywords beside a ``$ref`` that restrict values: none if the document is of draft 7 or earlier."""
    if is_old(document):
        return {}
    return {name: value for name, value in schema.items() if name not in _NO_EFFECT}


def is_old(document: Any) -> bool:
    """Return whether a document's draft is 7 or earlier, where keywords beside a ``$ref`` have no effect."""
    draft = document.get("$schema") if isinstance(document, Mapping) else None
    return isinstance(draft, str) and any(name in draft for name in _OLD)


def resolve_reference(schema: Any, root: Any) -> Any:
    """Return the target of a schema's ``$ref``, or the schema itself.

    Raises:
        TapError: the reference has no target, or is circular.
    """
    seen = set()
    while isinstance(schema, Mapping) and "$ref" in schema:
        reference = schema["$ref"]
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or reference in seen:
            raise TapError(f"config schema: the $ref {reference!r} is not a place in the schema")
        seen.add(reference)
        try:
            schema = target_of(reference, root)
        except LookupError as error:
            raise TapError(f"config schema: the $ref {reference!r} has no target: {error}") from None
    return schema
