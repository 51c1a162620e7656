"""Determine the types that a JSON Schema allows, and make a schema nullable."""

from __future__ import annotations

import copy
from typing import Any

Node = dict[str, Any]
"""A schema that is an object."""

_MAX_REFERENCES = 50
_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_CAN_REFUSE_NULL = frozenset({"const", "allOf", "anyOf", "oneOf", "not", "if", "$ref"})


def parts(node: Node, keyword: str) -> list[Any]:
    """Return a keyword's list of schemas; empty if it is not a list."""
    found = node.get(keyword)
    return found if isinstance(found, list) else []


def types(node: Any, root: Node, depth: int = 0) -> frozenset[str] | None:
    """Return the types that a schema allows; None if it allows all. ``integer`` is separate from ``number``."""
    if node is False:
        return frozenset()
    if not isinstance(node, dict) or depth > _MAX_REFERENCES:
        return None
    limits: list[frozenset[str] | None] = []
    own = node.get("type")
    if own is not None:
        limits.append(_TYPES.intersection([own] if isinstance(own, str) else own))
    target = _referred(node, root)
    if target is not None:
        limits.append(types(target, root, depth + 1))
    limits += [types(part, root, depth + 1) for part in parts(node, "allOf")]
    for keyword in ("anyOf", "oneOf"):
        branches = [types(part, root, depth + 1) for part in parts(node, keyword)]
        if branches:
            known = [branch for branch in branches if branch is not None]
            limits.append(frozenset[str]().union(*known) if len(known) == len(branches) else None)
    allowed = [limit | {"integer"} if "number" in limit else limit for limit in limits if limit is not None]
    return frozenset.intersection(*allowed) if allowed else None


def inline(node: Node, root: Node) -> None:
    """Replace ``$ref`` by the schema that it refers to; an unresolvable reference stays."""
    for _ in range(_MAX_REFERENCES):
        target = _referred(node, root)
        if target is None:
            return
        del node["$ref"]
        for keyword, value in copy.deepcopy(target).items():
            node.setdefault(keyword, value)


def _referred(node: Node, root: Node) -> Node | None:
    pointer = node.get("$ref")
    if not isinstance(pointer, str) or not pointer.startswith("#/"):
        return None
    target: Any = root
    for step in pointer[2:].split("/"):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    return target if isinstance(target, dict) else None


def nullable(node: Any) -> Any:
    """Return a schema that also allows null."""
    if not isinstance(node, dict):
        return {"type": "null"} if node is False else node
    if node.keys() & _CAN_REFUSE_NULL:
        return {"anyOf": [node, {"type": "null"}]}
    result = dict(node)
    if "type" in node:
        names = [node["type"]] if isinstance(node["type"], str) else list(node["type"])
        result["type"] = names if "null" in names else [*names, "null"]
    if isinstance(node.get("enum"), list) and None not in node["enum"]:
        result["enum"] = [*node["enum"], None]
    return result
