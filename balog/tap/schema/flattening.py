"""Flattening of schemas: ``allOf`` is merged, and ``anyOf`` with null becomes a type. Few targets support either.

A merged schema allows exactly the same values. Parts that cannot be merged stay unchanged.
"""

from __future__ import annotations

from typing import Any

from balog.tap.json_schema.keywords import ALL_TYPES, ANNOTATIONS, rebuilt
from balog.tap.schema.validity import check_depth

_MEMBERS = frozenset({"properties", "patternProperties", "additionalProperties"})
_ITEMS = frozenset({"items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains"})
_CONDITION = frozenset({"if", "then", "else"})
_EVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_LEAST = frozenset({"exclusiveMaximum", "maximum", "maxItems", "maxLength", "maxProperties"})
_MOST = frozenset({"exclusiveMinimum", "minimum", "minItems", "minLength", "minProperties"})
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
    names = one.keys() | other.keys()
    if not _EVALUATED.isdisjoint(names):  # what is evaluated depends on the parts beside it
        return None
    if not one or not other:
        return {**one, **other}
    for group in (_ITEMS, _CONDITION):
        first, second = group & one.keys(), group & other.keys()
        if first and second and not first == second == {"items"}:
            return None
    bounded = [schema for schema in (one, other) if not (_LEAST | _MOST).isdisjoint(schema)]
    switches = [
        isinstance(each.get(f"exclusive{end}"), bool) for each in (one, other) for end in ("Minimum", "Maximum")
    ]
    if any(switches) and len(bounded) == 2:
        return None  # draft 4, where one keyword changes the meaning of another
    made: dict[str, Any] = {}
    for name in (*one, *(name for name in other if name not in one)):
        if name in _MEMBERS:
            continue
        if name in one and name in other:
            found = _both(name, one[name], other[name])
            if found is None:
                return None
            made[name] = found[0]
        else:
            made[name] = one[name] if name in one else other[name]
    members = _members(one, other)
    return None if members is None else {**made, **members}


def _as_dict(schema: Any) -> dict[str, Any]:
    if isinstance(schema, dict):
        return schema
    return {} if schema else {"not": {}}


def _both(name: str, one: Any, other: Any) -> tuple[Any] | None:
    """Return the value of a keyword that merges two, in a tuple; None if there is none."""
    if name in ANNOTATIONS or _key(one) == _key(other):
        return (other,)
    if name == "type":
        return _types(one, other)
    if name == "required":
        return (list(dict.fromkeys([*one, *other])),)
    if name == "enum":
        known = set(map(_key, other))
        common = [value for value in one if _key(value) in known]
        return (common,) if common else None
    if name in _LEAST and not isinstance(one, bool):
        return (min(one, other),)
    if name in _MOST and not isinstance(one, bool):
        return (max(one, other),)
    if name == "uniqueItems":
        return (one or other,)
    if name == "items" and not isinstance(one, list) and not isinstance(other, list):
        found = intersected(one, other)
        return None if found is None else (found,)
    return None


def _key(value: Any) -> Any:
    """Return a hashable key that is equal for equal JSON values: 1 equals 1.0, but not true."""
    if isinstance(value, dict):
        return "object", frozenset((name, _key(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_key, value))
    return ("boolean", value) if isinstance(value, bool) else value


def _types(one: Any, other: Any) -> tuple[Any] | None:
    first, second = ({kinds} if isinstance(kinds, str) else set(kinds) for kinds in (one, other))
    common = first & second
    for some, others in ((first, second), (second, first)):
        if "integer" in some and "number" in others:
            common.add("integer")
    if "number" in common:
        common.discard("integer")
    if not common:
        return None
    return ([name for name in ALL_TYPES if name in common],) if len(common) > 1 else (common.pop(),)


def _members(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
    """Return the merged keywords of properties; ``additionalProperties`` applies to undeclared names."""
    if _MEMBERS.isdisjoint(one) or _MEMBERS.isdisjoint(other):
        return {name: schema[name] for schema in (one, other) for name in schema if name in _MEMBERS}
    rests = [schema.get("additionalProperties", True) for schema in (one, other)]
    are_open = all(rest is True or rest == {} for rest in rests)
    patterns = [schema.get("patternProperties", {}) for schema in (one, other)]
    if any(patterns) and not are_open:
        return None
    made: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    first, second = one.get("properties", {}), other.get("properties", {})
    for name in dict.fromkeys((*first, *second)):
        found = intersected(first.get(name, rests[0]), second.get(name, rests[1]))
        if found is None:
            found = {"allOf": [first.get(name, rests[0]), second.get(name, rests[1])]}
        properties[name] = found
    made["properties"] = properties
    if any(patterns):
        pairs = {name: [each[name] for each in patterns if name in each] for name in (*patterns[0], *patterns[1])}
        made["patternProperties"] = {
            name: schemas[0] if len(schemas) == 1 else {"allOf": schemas} for name, schemas in pairs.items()
        }
    if not are_open:
        rest = False if False in rests else intersected(*rests)
        if rest is None:
            return None
        made["additionalProperties"] = rest
    elif any("additionalProperties" in schema for schema in (one, other)):
        made["additionalProperties"] = True  # has no effect here, but on an outer ``unevaluatedProperties``
    return made
