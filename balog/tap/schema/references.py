"""Resolving of references in a JSON Schema: most targets do not support ``$ref`` and need one self-contained schema.

Keywords beside a ``$ref`` apply, too, as in drafts 2019-09 and later. In a document whose ``$schema`` is draft 7 or
earlier they have no effect, except titles, descriptions and other annotations.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from balog.tap.errors import SchemaError
from balog.tap.json_schema.keywords import ANNOTATIONS, IN_PLACE, Steps, loosened, rebuilt
from balog.tap.schema.documents import Documents, Target
from balog.tap.schema.flattening import intersected
from balog.tap.schema.validity import MAX_DEPTH, MAX_NODES, check, fault

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
