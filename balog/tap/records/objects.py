"""Objects and arrays: each property and item has its own schema; unchanged values are not copied."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from balog.tap.json_schema.mismatch import ANY_NAME, MismatchError, step

_MAX_PLANS = 256


class CompiledSchema(NamedTuple):
    """A compiled schema.

    Attributes:
        as_they_are: the types of which all values fit unchanged.
        make: returns a value that fits, or the same object if nothing changes. Raises MismatchError.
        by_type: ``make`` by type, for callers that know the type.
    """

    as_they_are: frozenset[type]
    make: Callable[[Any], Any]
    by_type: Mapping[type, Callable[[Any], Any]] = {}  # shared, never changed


class ObjectRules(NamedTuple):
    """The rules for the properties of an object.

    Attributes:
        known: schemas by name; None for deselected properties.
        patterns: schemas for names that match.
        additional: the schema of all other names; None or False leaves them out, unless ``keeps``.
        required: names of required properties.
        keeps: whether objects keep properties that this schema does not declare.
        note: called with the name of each property that is left out as undeclared.
    """

    known: Mapping[str, CompiledSchema | None]
    patterns: tuple[tuple[re.Pattern[str], CompiledSchema], ...]
    additional: CompiledSchema | bool | None
    required: tuple[str, ...]
    keeps: bool
    note: Callable[[str], None]


class _Plan(NamedTuple):
    """The steps for objects with the same names and types."""

    steps: tuple[tuple[str, Callable[[Any], Any], str], ...]
    left_out: tuple[str, ...]


_NOTHING = _Plan((), ())


def object_of(shape: ObjectRules) -> Callable[[Any], Any]:
    """Return a function that makes an object fit.

    The names and types of an object determine which values need a check. This plan is made once for each combination,
    so that most values cost nothing.
    """
    plans: dict[tuple[Any, ...], _Plan] = {}
    last: tuple[list[Any], list[type], _Plan] = ([None], [], _NOTHING)  # replaced in one step, for threads

    def make(value: dict[str, Any]) -> dict[str, Any]:
        nonlocal last
        names, types, plan = last
        # Most records have the names and types of the previous one; this comparison is faster than a lookup.
        if [*value] != names or [*map(type, value.values())] != types:
            key = (*value, *map(type, value.values()))
            next_plan = plans.get(key)
            if next_plan is None:
                named = _with_texts_as_names(value)
                next_plan = _plan(named, shape)
                if named is value and len(plans) < _MAX_PLANS:
                    plans[key] = next_plan
                value = named
            if key in plans:
                last = [*value], [*map(type, value.values())], next_plan
            plan = next_plan
        fields = value
        if plan is not _NOTHING:
            for name, fit, path_step in plan.steps:
                given = fields[name]  # which another step for this name may have changed
                try:
                    fitting = fit(given)
                except MismatchError as mismatch:
                    mismatch.steps.append(path_step)
                    raise
                if fitting is not given:
                    if fields is value:
                        fields = value.copy()
                    fields[name] = fitting
            if plan.left_out:
                if fields is value:
                    fields = value.copy()
                for name in plan.left_out:
                    del fields[name]
        return fields

    return make


def _with_texts_as_names(value: dict[Any, Any]) -> dict[str, Any]:
    """Return an object with strings as names: numbers become their digits."""
    if all(type(name) is str for name in value):
        return value
    named: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(name, str):
            text = str.__str__(name)
        elif type(name) is int or type(name) is float:
            text = str(name)
        else:
            raise MismatchError(f"has a name that is not a string but of Python's type {type(name).__name__}")
        if text in named:
            raise MismatchError("has a name twice, as a text and as a number")
        named[text] = item
    return named


def _plan(value: dict[str, Any], shape: ObjectRules) -> _Plan:
    steps, left_out = [], []
    for name, item in value.items():
        nodes, is_known = _nodes(name, shape)
        if nodes is None:
            left_out.append(name)
        path_step = step(name) if is_known else ANY_NAME
        kind = type(item)
        if nodes and len(nodes) > 1:  # each gets what the one before it has made, of any type
            steps += [(name, node.make, path_step) for node in nodes]
        elif nodes and kind not in nodes[0].as_they_are:
            steps.append((name, nodes[0].by_type.get(kind, nodes[0].make), path_step))
    for name in shape.required:
        if name not in value or name in left_out:
            mismatch = MismatchError("is missing, and required")
            mismatch.steps.append(step(name))
            raise mismatch
    return _Plan(tuple(steps), tuple(left_out)) if steps or left_out else _NOTHING


def _nodes(name: str, shape: ObjectRules) -> tuple[list[CompiledSchema] | None, bool]:
    """Return the schemas of a property (None if it is left out), and whether the schema declares its name."""
    nodes: list[CompiledSchema] = []
    if name in shape.known:
        node = shape.known[name]
        if node is None:
            return None, True
        nodes.append(node)
    nodes += [node for pattern, node in shape.patterns if pattern.search(name)]
    if nodes:
        return nodes, name in shape.known
    if isinstance(shape.additional, CompiledSchema):
        return [shape.additional], False
    if not shape.keeps:
        shape.note(name)
        return None, False
    return [], False


def array_of(first: tuple[CompiledSchema, ...], rest: CompiledSchema) -> Callable[[Any], Any]:
    """Return a function that makes an array fit.

    Args:
        first: the schemas of the first items.
        rest: the schema of all other items.
    """
    count = len(first)

    def make(value: list[Any]) -> list[Any]:
        items = value
        for index, item in enumerate(value):
            node = first[index] if index < count else rest
            if type(item) in node.as_they_are:
                continue
            try:
                fitting = node.make(item)
            except MismatchError as mismatch:
                mismatch.steps.append(f"[{index}]")
                raise
            if fitting is not item:
                if items is value:
                    items = value.copy()
                items[index] = fitting
        return items

    return make
