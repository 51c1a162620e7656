"""Change a JSON Schema along with its records.

A rule applies wherever the schema describes the property: in ``$ref`` targets, the branches of ``allOf``, ``anyOf`` and
``oneOf``, and the items of arrays. Keywords that can't be adapted (``if``, ``not``, ``minProperties`` …) are removed
from the changed objects, so the schema may allow more than the records have, never less.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from balog.broker.records.masks import Mask
from balog.broker.records.paths import Steps

Node = dict[str, Any]
"""A schema that is an object."""

_MAX_REFERENCES = 50
_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_CAN_REFUSE_NULL = frozenset({"const", "allOf", "anyOf", "oneOf", "not", "if", "$ref"})


def parts(node: Node, keyword: str) -> list[Any]:
    """Return a keyword's list of schemas; empty if it is not a list."""
    schemas = node.get(keyword)
    return schemas if isinstance(schemas, list) else []


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


Change = Callable[[Node], bool]
"""Changes the schema of an object, and returns whether it has the changed property."""

_KEPT_OF_A_MASKED = ("title", "description", "$comment", "deprecated", "readOnly", "writeOnly", "inclusion", "selected")
_NOT_FOLLOWED = (
    *("if", "then", "else", "not", "dependencies", "dependentRequired", "dependentSchemas", "propertyNames"),
    *("minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems", "enum", "const"),
    *("contains", "minContains", "maxContains", "uniqueItems", "default", "example", "examples"),
)


def reach_schema(node: Any, root: Node, steps: Steps, change: Change) -> bool:
    """Change the schemas of all objects at ``steps`` in place. Return whether one has the changed property."""
    if not isinstance(node, dict):
        return False
    loosen(node, root)
    same = [*parts(node, "allOf"), *parts(node, "anyOf"), *parts(node, "items"), *parts(node, "prefixItems")]
    same += [node[keyword] for keyword in ("items", "additionalItems") if isinstance(node.get(keyword), dict)]
    changed = [reach_schema(part, root, steps, change) for part in same]
    if not steps:
        changed.append(change(node))
    elif declared(node, steps[0]) is not None:
        changed.append(reach_schema(node["properties"][steps[0]], root, steps[1:], change))
    return any(changed)


def loosen(node: Node, root: Node) -> None:
    """Remove keywords from an object's schema that would no longer hold once the object changes."""
    inline(node, root)
    for keyword in _NOT_FOLLOWED:
        node.pop(keyword, None)
    if "oneOf" in node:  # the change may remove the difference between the branches
        either = {"anyOf": node.pop("oneOf")}
        if "anyOf" in node:
            node.setdefault("allOf", []).append(either)
        else:
            node.update(either)


def declared(node: Node, name: str) -> Any:
    """Return the schema of an object's property; None if it is not declared.

    One that is described by ``patternProperties`` or ``additionalProperties`` gets an entry of its own, so that it can
    be changed without the others, and the patterns that it matches allow anything from then on.
    """
    properties = node["properties"] if isinstance(node.get("properties"), dict) else {}
    matching = _open_patterns(node, name)
    if name not in properties:
        others = node.get("additionalProperties")
        if matching:
            properties[name] = copy.deepcopy(matching[0]) if len(matching) == 1 else {}
        elif isinstance(others, dict):
            properties[name] = copy.deepcopy(others)
        else:
            return None
        node["properties"] = properties
    return properties[name]


def _open_patterns(node: Node, name: str) -> list[Any]:
    """Replace the schemas of the patterns that a name matches by ``true``; return the replaced schemas."""
    patterns = node.get("patternProperties")
    if not isinstance(patterns, dict):
        return []
    matching = [pattern for pattern in patterns if matches(pattern, name)]
    kept = [patterns[pattern] for pattern in matching]
    for pattern in matching:
        patterns[pattern] = {}
    return kept


def matches(pattern: str, name: str) -> bool:
    """Return whether a schema's pattern matches a name; True for a pattern that Python can't compile."""
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return True


def masked(node: Any, root: Node, mask: Mask) -> Any:
    """Return the schema of masked values; only the types of the original schema count."""
    kinds = types(node, root)
    if not isinstance(node, dict) or kinds == frozenset():
        return node
    result: Node = {keyword: node[keyword] for keyword in _KEPT_OF_A_MASKED if keyword in node}
    if kinds is None:
        return result
    becomes = {"array": ("array",), "null": ("null",), **mask.becomes}
    names = dict.fromkeys(after for kind in _in_order(node, kinds) for after in becomes[kind] if after != "null")
    if "number" in names:
        names.pop("integer", None)
    if any("null" in becomes[kind] for kind in kinds):
        names["null"] = None
    result["type"] = [*names] if len(names) > 1 else next(iter(names))
    if mask.max_length is not None and "string" in names:
        result["maxLength"] = mask.max_length
    if "array" in kinds and "items" in node:
        items = node["items"]
        if "array" in mask.becomes:  # the masked value is no array; its items still describe the column
            result["items"] = items
        elif isinstance(items, list):
            result["items"] = [masked(item, root, mask) for item in items]
        else:
            result["items"] = masked(items, root, mask)
    return result


def _in_order(node: Node, kinds: frozenset[str]) -> list[str]:
    own = node.get("type")
    kept = [kind for kind in ([own] if isinstance(own, str) else own or ()) if kind in kinds]
    return [*kept, *sorted(kinds.difference(kept))]


def mask_property(node: Node, name: str, root: Node, mask: Mask) -> bool:
    """Change a property's schema to that of its masked values."""
    known = declared(node, name)
    if known is None:
        return False
    node["properties"][name] = masked(known, root, mask)
    return True


def put_property(node: Node, name: str, schema: Any, root: Node) -> bool:
    """Set a property's schema, in every branch that declares the property."""
    if declared(node, name) is not None or node is root or node.get("additionalProperties") is False:
        node.setdefault("properties", {})[name] = copy.deepcopy(schema)
    return True


def drop_property(node: Node, name: str) -> bool:
    """Remove a property."""
    is_required = name in parts(node, "required")
    _require(node, lambda required: None if required == name else required)
    if declared(node, name) is None:
        return is_required
    del node["properties"][name]
    return True


def rename_properties(node: Node, names: Mapping[str, str]) -> bool:
    """Rename properties at once. If a pattern or ``additionalProperties`` also allows the new name, either may apply.

    Raises:
        KeyError: two properties would have the name that it holds.
    """
    is_required = not names.keys().isdisjoint(parts(node, "required"))
    _require(node, lambda required: names.get(required, required))
    if not [old for old in names if declared(node, old) is not None]:
        return is_required
    known = set(node["properties"])
    properties: Node = {}
    for name, schema in node["properties"].items():
        new = names.get(name, name)
        if new in properties:
            raise KeyError(new)
        taken = declared({**node, "properties": {}}, new) if new not in known else None
        properties[new] = schema if taken in (None, schema) else {"anyOf": [schema, taken]}
    node["properties"] = properties
    return True


def _require(node: Node, change: Callable[[str], str | None]) -> None:
    required = node.get("required")
    if isinstance(required, list):
        node["required"] = [name for name in map(change, required) if name is not None]
        if not node["required"]:
            del node["required"]  # draft 4 requires at least one name
