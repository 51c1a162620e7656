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
    made: dict[str, Any] = _flat(schema)
    return made


def _flat(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    made = rebuilt(node, lambda child, steps: _flat(child))
    for name in ("anyOf", "oneOf"):
        one = _or_null(made[name]) if isinstance(made.get(name), list) else None
        if one is not None:
            both = intersected(one, {key: value for key, value in made.items() if key != name})
            made = made if both is None else both
    parts = made.get("allOf")
    if not isinstance(parts, list):
        return made
    made = {name: value for name, value in made.items() if name != "allOf"}
    left = []
    for part in parts:
        both = intersected(part, made)
        if both is None:
            left.append(part)
        else:
            made = both
    return {**made, "allOf": left} if left else made


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
    made = {**schema, "type": ["null", *([kinds] if isinstance(kinds, str) else kinds)]}
    if isinstance(schema.get("enum"), list):
        made["enum"] = [*schema["enum"], None]
    return made


def intersected(one: Any, other: Any) -> dict[str, Any] | None:
    """Return one schema for the values that are valid for both; None if that requires ``allOf``.

    Titles and other annotations are those of the second.
    """
    one, other = _as_dict(one), _as_dict(other)
    if not _EVALUATED.isdisjoint(one.keys() | other.keys()):  # what is evaluated depends on the parts beside it
        return None
    if any(group & one.keys() and group & other.keys() for group in _GROUPS):
        return None
    members = [_MEMBERS & schema.keys() for schema in (one, other)]
    if all(members) and members != [{"properties"}] * 2:  # ``additionalProperties`` depends on the names beside it
        return None
    made = {**one, **other}
    for name in one.keys() & other.keys():
        if name == "type":
            made[name] = _types(one[name], other[name])
        elif name == "required":
            made[name] = list(dict.fromkeys([*one[name], *other[name]]))
        elif name == "properties":
            made[name] = {**one[name], **other[name]}
            for inner in one[name].keys() & other[name].keys():
                parts = [one[name][inner], other[name][inner]]
                both = intersected(*parts)
                made[name][inner] = {"allOf": parts} if both is None else both
        elif name not in ANNOTATIONS and repr(one[name]) != repr(other[name]):  # 1 is not True
            return None
    return None if made.get("type", ()) is None else made


def _as_dict(schema: Any) -> dict[str, Any]:
    if isinstance(schema, dict):
        return schema
    return {} if schema else {"not": {}}


def _types(one: Any, other: Any) -> Any:
    """Return the types that are in both; None if there is none."""
    first, second = ({kinds} if isinstance(kinds, str) else set(kinds) for kinds in (one, other))
    common = first & second
    for some, others in ((first, second), (second, first)):
        if "integer" in some and "number" in others:
            common.add("integer")
    if "number" in common:
        common.discard("integer")
    if not common:
        return None
    return [name for name in ALL_TYPES if name in common] if len(common) > 1 else common.pop()
