"""Self-contained schemas: references are resolved, ``allOf`` is merged, and ``anyOf`` with null becomes a type.

Most targets support neither. Keywords beside a ``$ref`` apply, too, as in drafts 2019-09 and later. In a document whose
``$schema`` is draft 7 or earlier they have no effect, except titles, descriptions and other annotations. A flattened
schema allows exactly the same values, and parts that cannot be merged stay unchanged.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from balog.tap.errors import SchemaError
from balog.tap.json_schema.keywords import ALL_TYPES, ANNOTATIONS, IN_PLACE, Steps, loosened, rebuilt
from balog.tap.schema.documents import MAX_DEPTH, MAX_NODES, Documents, Target, check, check_depth, fault

_DROPPED = frozenset(
    {"$anchor", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary", "definitions"}
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def resolve(
    schema: dict[str, Any],
    base: str = "",
    *,
    depth: int = 2,
    documents: Documents | None = None,
) -> dict[str, Any]:
    """Return a schema with its references replaced by their targets, without ``$ref`` and definitions.

    A recursive schema is expanded ``depth`` times and then cut to its type alone, so that all valid values stay valid.
    ``$dynamicRef`` and ``$recursiveRef`` are resolved like ``$ref``.

    Args:
        schema: a schema. It is not changed.
        base: the file of the schema, as base of relative references; "" means the current folder.
        depth: how often a recursive reference is expanded.
        documents: ``Documents`` that are already read; None reads files.

    Raises:
        SchemaError: a reference has no target or is circular, the schema is invalid, or the result has more than 10,000
            schemas.
    """
    known = documents or Documents()
    return resolve_target(known, known.add(schema, base), depth)


def resolve_target(documents: Documents, target: Target, depth: int = 2) -> dict[str, Any]:
    """Resolve one schema of ``documents``, which can be a part of a document."""
    check(target.node, target.document.name)
    schema = _Resolver(documents, depth).root(target)
    if not isinstance(schema, dict):
        raise fault("expected a schema of records, an object", target.document.name, target.steps)
    draft = target.document.root.get("$schema") if isinstance(target.document.root, dict) else None
    return {"$schema": draft, **schema} if draft else schema


class _Resolver:
    def __init__(self, documents: Documents, depth: int) -> None:
        self._documents = documents
        self._depth = depth
        self._open: Counter[int] = Counter()
        self._checked: set[int] = set()
        self._nodes = 0
        self._inside = 0
        self._cuts = 0

    def root(self, target: Target) -> Any:
        self._open[id(target.node)] += 1
        return self._walk(target, ())

    def _walk(self, at: Target, chain: tuple[int, ...]) -> Any:
        """Resolve one schema; ``chain`` has the references that were followed for the same value."""
        self._inside += 1
        if self._inside > MAX_DEPTH:
            raise fault(f"nested deeper than {MAX_DEPTH} when references are resolved", at.document.name, at.steps)
        try:
            return self._resolved(at, chain)
        finally:
            self._inside -= 1

    def _resolved(self, at: Target, chain: tuple[int, ...]) -> Any:
        node = at.node
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise fault(f"more than {MAX_NODES} schemas when references are resolved", at.document.name, at.steps)
        if not isinstance(node, dict):
            return node
        rest = {
            name: value
            for name, value in node.items()
            if name not in _DROPPED and name not in _REFERENCES and not (name == "id" and isinstance(value, str))
        }
        references = [name for name in _REFERENCES if name in node]
        if references and at.document.is_old:
            rest = {name: value for name, value in rest.items() if name in ANNOTATIONS}
        cut: set[str | int] = set()

        def walk(child: Any, steps: Steps) -> Any:
            before = self._cuts
            subschema = self._walk(at.inside(child, steps), chain if steps[0] in IN_PLACE else ())
            if self._cuts > before:
                cut.add(steps[0])
            return subschema

        before = self._cuts
        followed = [self._follow(at, name, chain) for name in references]
        if self._cuts > before:
            cut.add("$ref")
        schema = loosened(rebuilt(rest, walk), cut)
        for target in followed:
            both = intersected(target, schema)
            schema = both if both is not None else {"allOf": [target, schema]}
        return schema

    def _follow(self, at: Target, name: str, chain: tuple[int, ...]) -> Any:
        reference, source, steps = at.node[name], at.document.name, (*at.steps, name)
        if not isinstance(reference, str):
            raise fault(f"expected a text; found {type(reference).__name__}", source, steps)
        target = self._documents.find(reference, at)
        if isinstance(target, str):
            raise fault(f"{reference!r} has no target: {target}", source, steps)
        key = id(target.node)
        if key in chain:
            raise fault(f"{reference!r} is circular", source, steps)
        if key not in self._checked:
            self._checked.add(key)
            try:
                check(target.node, target.document.name)
            except SchemaError as error:
                raise fault(f"{reference!r} is not a schema: {error}", source, steps) from None
        if self._open[key] > self._depth:
            self._cuts += 1
            kind = target.node.get("type") if isinstance(target.node, dict) else None
            return {"type": kind} if kind else {}
        self._open[key] += 1
        schema = self._walk(target, (*chain, key))
        self._open[key] -= 1
        return schema if isinstance(schema, dict) else {} if schema else {"not": {}}


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
