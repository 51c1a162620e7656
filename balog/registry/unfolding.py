"""Bounds of a JSON Schema: how deep it is, how far it unfolds, and that it takes what it refers to from itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from balog.registry.schema import SchemaError

__all__ = ["check_bounds", "resolve"]

MAX_DEPTH = 100
MAX_UNFOLDED = 100_000


def check_bounds(document: dict[str, Any], where: str = "") -> None:
    """Refuse a schema by which one look at a small payload could take for ever.

    Alternatives that refer to alternatives double with each step; 30 such steps are 10⁹ checks. What counts here is
    each way from the root to a sub-schema, references followed, one into itself once.

    Raises:
        SchemaError: deeper than 100, or unfolding to more than 100,000 sub-schemas.
    """
    if _depth(document) > MAX_DEPTH:
        raise SchemaError(f"nested deeper than {MAX_DEPTH}", where)
    try:
        count = _unfolded(document, document, {})
    except RecursionError:
        raise SchemaError("its references lead through too many others", where) from None
    if count > MAX_UNFOLDED:
        raise SchemaError(
            f"unfolds to more than {MAX_UNFOLDED} checks; let fewer alternatives refer to alternatives", where
        )


def resolve(document: Any, reference: Any) -> Any:
    """Give what a ``$ref`` into the document (``#/$defs/a``) leads to; None when it leads elsewhere."""
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


def _depth(document: Any) -> int:
    depth, level = 0, [document]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [child for node in level for child in _inner(node)]
    return depth


def _inner(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node


def _unfolded(node: Any, document: Any, known: dict[int, int]) -> int:
    """Count the ways to the dicts below a node; ``known`` holds 0 for one that is being counted."""
    if not isinstance(node, (dict, list)):
        return 0
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = 0
    count = 1 if isinstance(node, dict) else 0
    for name, child in node.items() if isinstance(node, dict) else enumerate(node):
        if name in ("$defs", "definitions"):
            continue  # they count where they are referred to
        count += _unfolded(child, document, known)
    if isinstance(node, dict):
        count += _unfolded(resolve(document, node.get("$ref")), document, known)
    known[id(node)] = count
    return count
