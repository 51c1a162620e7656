"""Flattening of schemas: ``allOf`` is merged, and ``anyOf`` with null becomes a type. Few targets support either.

A merged schema allows exactly the same values. Parts that cannot be merged stay unchanged.
"""

from __future__ import annotations

from typing import Any

from balog.tap.json_schema.keywords import ALL_TYPES, ANNOTATIONS, rebuilt
from balog.tap.schema.validity import check_depth

_MEMBERS = frozenset({"properties", "patternProperties", "additionalProperties"})
_EVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_GROUPS = (
    frozenset({"items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
    frozenset({"minimum", "exclusiveMinimum"}),
    frozenset({"maximum", "exclusiveMaximum"}),
)
"""Keywords that change each other's meaning, so that those of two schemas cannot stand in one."""
_CHOICES = frozenset({"$ref", "allOf", "anyOf", "const", "if", "not", "oneOf"})


def flatten(schema: dict[str, Any]) -> dict[str, Any]:
    """Merge each ``allOf`` into its parent, and each ``anyOf`` or ``oneOf`` of one schema and null.

    Args:
        schema: a schema with resolved references (``resolve``). It is not changed.

    Raises:
        SchemaError: the schema is nested deeper than 100.
    """
    check_depth(schema)
    flat_schema: dict[str, Any] = _flat(schema)
    return flat_schema


def _flat(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    schema = rebuilt(node, lambda child, steps: _flat(child))
    for name in ("anyOf", "oneOf"):
        alternative = _or_null(schema[name]) if isinstance(schema.get(name), list) else None
        if alternative is not None:
            both = intersected(alternative, {key: value for key, value in schema.items() if key != name})
            schema = schema if both is None else both
    parts = schema.get("allOf")
    if not isinstance(parts, list):
        return schema
    schema = {name: value for name, value in schema.items() if name != "allOf"}
    left = []
    for part in parts:
        both = intersected(part, schema)
        if both is None:
            left.append(part)
        else:
            schema = both
    return {**schema, "allOf": left} if left else schema


def _or_null(parts: list[Any]) -> dict[str, Any] | None:
    """Return one schema for an alternative of a schema and null; None for other alternatives."""
    nulls = [part for part in parts if part == {"type": "null"}]
    others = [part for part in parts if part != {"type": "null"}]
    if len(others) != 1 or len(nulls) != 1 or not isinstance(others[0], dict):
        return None
    kinds = others[0].get("type")
    if kinds is None or "null" in kinds or not _CHOICES.isdisjoint(others[0]):
        return None
    return nullable(others[0])


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also allows null; a schema without a type is returned unchanged."""
    kinds = schema.get("type")
    if kinds is None or "null" in kinds:
        return schema
    nullable_schema = {**schema, "type": ["null", *([kinds] if isinstance(kinds, str) else kinds)]}
    if isinstance(schema.get("enum"), list):
        nullable_schema["enum"] = [*schema["enum"], None]
    return nullable_schema


def intersected(first: Any, second: Any) -> dict[str, Any] | None:
    """Return one schema for the values that are valid for both; None if that requires ``allOf``.

    Titles and other annotations are those of the second.
    """
    first, second = _as_dict(first), _as_dict(second)
    if not _EVALUATED.isdisjoint(first.keys() | second.keys()):  # what is evaluated depends on the parts beside it
        return None
    if any(group & first.keys() and group & second.keys() for group in _GROUPS):
        return None
    members = [_MEMBERS & schema.keys() for schema in (first, second)]
    if all(members) and members != [{"properties"}] * 2:  # ``additionalProperties`` depends on the names beside it
        return None
    intersection = {**first, **second}
    for name in first.keys() & second.keys():
        if name == "type":
            intersection[name] = _types(first[name], second[name])
        elif name == "required":
            intersection[name] = list(dict.fromkeys([*first[name], *second[name]]))
        elif name == "properties":
            intersection[name] = {**first[name], **second[name]}
            for inner in first[name].keys() & second[name].keys():
                parts = [first[name][inner], second[name][inner]]
                both = intersected(*parts)
                intersection[name][inner] = {"allOf": parts} if both is None else both
        elif name not in ANNOTATIONS and repr(first[name]) != repr(second[name]):  # 1 is not True
            return None
    return None if intersection.get("type", ()) is None else intersection


def _as_dict(schema: Any) -> dict[str, Any]:
    if isinstance(schema, dict):
        return schema
    return {} if schema else {"not": {}}


def _types(left: Any, right: Any) -> Any:
    """Return the types that are in both; None if there is none."""
    first, second = ({kinds} if isinstance(kinds, str) else set(kinds) for kinds in (left, right))
    common = first & second
    for some, others in ((first, second), (second, first)):
        if "integer" in some and "number" in others:
            common.add("integer")
    if "number" in common:
        common.discard("integer")
    if not common:
        return None
    return [name for name in ALL_TYPES if name in common] if len(common) > 1 else common.pop()
