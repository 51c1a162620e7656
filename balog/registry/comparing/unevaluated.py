"""Replaces ``unevaluatedProperties`` with ``additionalProperties`` where the two are equivalent.

Canonical forms do not know which members other keywords evaluate. If only ``allOf`` and ``$ref`` are beside
``unevaluatedProperties``, they evaluate the members that they declare.
"""

from __future__ import annotations

from typing import Any

from balog.registry.subschemas import copy_schema, resolve, subschemas

_CONDITIONAL = frozenset(
    {"anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "$dynamicRef", "$recursiveRef"}
)
_OLD = ("draft-04", "draft-06", "draft-07")
_WORD = "unevaluatedProperties"


def replace_unevaluated(document: dict[str, Any]) -> dict[str, Any]:
    """Return an equivalent schema that uses ``additionalProperties`` where possible."""
    if any(old in str(document.get("$schema")) for old in _OLD):  # they do not know the word
        return document
    nodes = [node for _, node in subschemas(document)]
    if not any(_WORD in node for node in nodes) or any(_WORD in str(node.get("$ref", "")) for node in nodes):
        return document

    def change(schema: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
        return _without_unevaluated(schema, original, document)

    found: dict[str, Any] = copy_schema(document, change)
    return found


def _without_unevaluated(made: dict[str, Any], node: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    if _WORD not in node or _CONDITIONAL & set(node):
        return made
    named = _named(node, document, set())
    if named is None:
        return made
    properties, patterns, are_all = named
    others = made.pop(_WORD)
    if are_all:  # another keyword has evaluated every member
        return made
    if properties <= set(made.get("properties", {})) and patterns <= set(made.get("patternProperties", {})):
        return {**made, "additionalProperties": others}
    rest: dict[str, Any] = {"properties": dict.fromkeys(sorted(properties), True), "additionalProperties": others}
    if patterns:
        rest["patternProperties"] = dict.fromkeys(sorted(patterns), True)
    return {**made, "allOf": [*made.get("allOf", []), rest]}


def _named(
    node: Any, document: dict[str, Any], above: set[int], at_top: bool = True
) -> tuple[set[str], set[str], bool] | None:
    """Return the names and patterns that a schema always evaluates, and whether it evaluates all; else None."""
    if not isinstance(node, dict):
        return set(), set(), False
    if id(node) in above or (_CONDITIONAL - {"not"}) & set(node):
        return None
    above = above | {id(node)}
    properties, patterns = set(node.get("properties", {})), set(node.get("patternProperties", {}))
    are_all = "additionalProperties" in node or (_WORD in node and not at_top)
    inner = [*node.get("allOf", [])]
    if "$ref" in node:
        if (target := resolve(document, node["$ref"])) is None:
            return None
        inner.append(target)
    for each in inner:
        found = _named(each, document, above, at_top=False)
        if found is None:
            return None
        properties |= found[0]
        patterns |= found[1]
        are_all = are_all or found[2]
    return properties, patterns, are_all
