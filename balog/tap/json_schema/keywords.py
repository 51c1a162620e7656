"""The keywords of JSON Schema, drafts 4 to 2020-12: the schemas in them, and the types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Steps = tuple[str | int, ...]
"""A place in a document: names of members and indexes of items."""

MAX_DEPTH = 60
"""Maximum nesting of a config's schema, where it is followed."""
ALL_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

IN_PLACE = frozenset({"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""Keywords whose schemas apply to the value itself, not to a part of it."""

DEPENDENT = ("dependencies", "dependentRequired", "dependentSchemas")
"""Keywords whose schemas and names apply to objects with a property."""

ANNOTATIONS = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
)
"""Keywords that describe a value without restricting it."""

# Keywords that contain schemas, so that data is not mistaken for schemas.
_ONE = frozenset(
    (
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    )
)
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_MAPS = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})


def is_number(value: Any) -> bool:
    """Return whether a value is a number; booleans are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_names(value: Any) -> bool:
    """Return whether a value is a list of names."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def types_of(schema: Any) -> tuple[str, ...]:
    """Return the types in a schema's ``type``; () if it has none. Malformed ones count as absent."""
    declared = schema.get("type") if isinstance(schema, Mapping) else None
    named = (declared,) if isinstance(declared, str) else declared if isinstance(declared, (list, tuple)) else ()
    return tuple(name for name in named if isinstance(name, str))


def listed(schema: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list of schemas of a keyword; a malformed one counts as absent."""
    schemas = schema.get(name)
    return schemas if isinstance(schemas, list) else []


def required_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of required properties."""
    return tuple(name for name in listed(schema, "required") if isinstance(name, str))


def names_of(schema: Any, target_of: Callable[[str], Any], seen: set[str]) -> Counter[str]:
    """Return the names of properties that a schema declares in any of its parts.

    The count of a name is the number of parts that have a schema for it; 0 if it is only required.

    Args:
        target_of: returns the target of a reference.
        seen: references that are not followed; those that are followed are added.
    """
    names: Counter[str] = Counter()
    if not isinstance(schema, Mapping):
        return names
    properties = schema.get("properties")
    names.update([*properties] if isinstance(properties, Mapping) else ())
    lists = [required_of(schema)]
    for keyword in DEPENDENT:
        needed = schema.get(keyword)
        lists += filter(is_names, needed.values() if isinstance(needed, Mapping) else ())
    names.update({name: 0 for needed in lists for name in needed})
    parts = [part for steps, part in children(schema) if steps[0] in IN_PLACE and steps[0] != "not"]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        parts.append(target_of(reference))
    for part in parts:
        names.update(names_of(part, target_of, seen))
    return names


def children(node: Mapping[str, Any]) -> Iterator[tuple[Steps, Any]]:
    """Yield the direct subschemas of a schema with their steps."""
    for name, value in node.items():
        if name in _MANY and isinstance(value, list):
            for index, item in enumerate(value):
                yield (name, index), item
        elif name in _MAPS and isinstance(value, Mapping):
            for key, item in value.items():
                if not (name == "dependencies" and isinstance(item, list)):
                    yield (name, key), item
        elif name in _ONE:
            yield (name,), value


def subschemas(schema: Any) -> Iterator[tuple[Steps, Any]]:
    """Yield a schema and all schemas inside it with their steps, in their order."""
    nodes: list[tuple[Steps, Any]] = [((), schema)]
    while nodes:
        steps, node = nodes.pop()
        yield steps, node
        if isinstance(node, Mapping):
            nodes += [((*steps, *inner), child) for inner, child in children(node)][::-1]


def rebuilt(node: dict[str, Any], make: Callable[[Any, Steps], Any]) -> dict[str, Any]:
    """Return a copy of a schema with ``make(inner, steps)`` in place of each direct subschema."""
    schema = dict(node)
    for steps, child in children(node):
        name, *inner = steps
        changed = make(child, steps)
        if not inner:
            schema[str(name)] = changed
            continue
        if schema[str(name)] is node[str(name)]:
            schema[str(name)] = node[str(name)].copy()
        schema[str(name)][inner[0]] = changed
    return schema


def loosened(schema: dict[str, Any], cut: set[str | int]) -> dict[str, Any]:
    """Remove the keywords that reject more values when the schemas in the keywords ``cut`` accept more."""
    if not cut:
        return schema
    dropped: set[str] = set()
    if "not" in cut:
        dropped.add("not")
    if "if" in cut:
        dropped |= {"if", "then", "else"}
    if "contains" in cut:
        dropped.add("maxContains")
    if "$ref" in cut or not IN_PLACE.isdisjoint(cut):
        dropped |= {"unevaluatedProperties", "unevaluatedItems"}
    rest = {name: value for name, value in schema.items() if name not in dropped}
    if "oneOf" in cut:
        alternatives = {"anyOf": rest.pop("oneOf")}
        rest = (
            {**rest, "allOf": [*rest.get("allOf", []), alternatives]} if "anyOf" in rest else {**rest, **alternatives}
        )
    return rest


def without(schema: Mapping[str, Any], is_left_out: Callable[[str], bool]) -> dict[str, Any]:
    """Return a schema that does not require the properties that are left out."""

    def kept(names: Any) -> Any:
        return [name for name in names if not is_left_out(name)] if is_names(names) else names

    relaxed_schema = dict(schema)
    if is_names(required := schema.get("required")):
        relaxed_schema["required"] = kept(required)
        if not relaxed_schema["required"]:  # draft 4 has no empty list
            del relaxed_schema["required"]
    for keyword in ("dependencies", "dependentRequired"):
        if isinstance(needed := schema.get(keyword), Mapping):
            rest = {name: kept(value) for name, value in needed.items()}
            relaxed_schema[keyword] = {name: value for name, value in rest.items() if value != []}
    properties, least = schema.get("properties"), schema.get("minProperties")
    if isinstance(least, int) and isinstance(properties, Mapping) and (count := sum(map(is_left_out, properties))):
        relaxed_schema["minProperties"] = max(0, least - count)
    return relaxed_schema
