"""Objects and arrays: each property and item by its own schema, nothing copied where nothing changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from balog.tap.records.limits import Check
from balog.tap.records.mismatch import ANY_NAME, MismatchError, step

__all__ = ["CompiledSchema", "ObjectRules", "array_of", "object_of"]

_MAX_PLANS = 256


class CompiledSchema(NamedTuple):
    """A schema that is ready to be asked.

    Attributes:
        as_they_are: the types whose values fit whatever they are.
        make: gives a value as it fits; the same object where nothing has to change. Raises MismatchError.
        by_type: the same for values of a type, without asking which it is.
    """

    as_they_are: frozenset[type]
    make: Callable[[Any], Any]
    by_type: Mapping[type, Callable[[Any], Any]] = {}  # nobody writes to it


class ObjectRules(NamedTuple):
    """What an object may hold.

    Attributes:
        known: by name; None for one that was not selected.
        patterns: for names that match.
        additional: for all other names; None leaves those out, and False is a fault where ``is_test``.
        required: names that must be there.
        is_test: nothing is left out: what the object has beyond its schema is for another schema to say.
        note: is told the name of a property that is left out because no schema has it.
    """

    known: Mapping[str, CompiledSchema | None]
    patterns: tuple[tuple[re.Pattern[str], CompiledSchema], ...]
    additional: CompiledSchema | bool | None
    required: tuple[str, ...]
    is_test: bool
    note: Callable[[str], None]
    checks: tuple[Check, ...] = ()


class _Plan(NamedTuple):
    """What there is to do for objects of some names and types."""

    steps: tuple[tuple[str, Callable[[Any], Any], str], ...]
    left_out: tuple[str, ...]


_NOTHING = _Plan((), ())


def object_of(shape: ObjectRules) -> Callable[[Any], Any]:
    """Return the function that makes an object fit.

    The names and types of an object say which of its values have to be looked at; that is found out once for each
    combination, so that most of a record costs nothing.
    """
    plans: dict[tuple[Any, ...], _Plan] = {}
    checks = shape.checks
    last: tuple[list[Any], list[type], _Plan] = ([None], [], _NOTHING)  # of one moment: threads may ask

    def make(value: dict[str, Any]) -> dict[str, Any]:
        nonlocal last
        names, types, plan = last
        # Most records are like the one before, and to see that is quicker than to look it up.
        if [*value] != names or [*map(type, value.values())] != types:
            key = (*value, *map(type, value.values()))
            found = plans.get(key)
            if found is None:
                named = _with_texts_as_names(value)
                found = _plan(named, shape)
                if named is value and len(plans) < _MAX_PLANS:
                    plans[key] = found
                value = named
            if key in plans:
                last = [*value], [*map(type, value.values())], found
            plan = found
        made = value
        if plan is not _NOTHING:
            for name, fit, place in plan.steps:
                given = value[name]
                try:
                    fitting = fit(given)
                except MismatchError as fault:
                    fault.steps.append(place)
                    raise
                if fitting is not given:
                    if made is value:
                        made = value.copy()
                    made[name] = fitting
            if plan.left_out:
                if made is value:
                    made = value.copy()
                for name in plan.left_out:
                    del made[name]
        for check in checks:
            check(made)
        return made

    return make


def _with_texts_as_names(value: dict[Any, Any]) -> dict[str, Any]:
    """Return an object whose names are texts: the same where they are, a number's digits for a number."""
    if all(type(name) is str for name in value):
        return value
    made: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(name, str):
            text = str.__str__(name)
        elif type(name) is int or type(name) is float:
            text = str(name)
        else:
            raise MismatchError(f"has a name that is no text but of Python's type {type(name).__name__}")
        if text in made:
            raise MismatchError("has a name twice, as a text and as a number")
        made[text] = item
    return made


def _plan(value: dict[str, Any], shape: ObjectRules) -> _Plan:
    steps, left_out = [], []
    for name, item in value.items():
        nodes, is_known = _nodes(name, shape)
        if nodes is None:
            left_out.append(name)
        place = step(name) if is_known else ANY_NAME
        kind = type(item)
        steps += [
            (name, node.by_type.get(kind, node.make), place) for node in nodes or () if kind not in node.as_they_are
        ]
    for name in shape.required:
        if name not in value or name in left_out:
            fault = MismatchError("is missing, and required")
            fault.steps.append(step(name))
            raise fault
    return _Plan(_merged(steps), tuple(left_out)) if steps or left_out else _NOTHING


def _nodes(name: str, shape: ObjectRules) -> tuple[list[CompiledSchema] | None, bool]:
    """Return what a property has to fit, None when it is left out; and whether its name is the schema's."""
    found: list[CompiledSchema] = []
    if name in shape.known:
        node = shape.known[name]
        if node is None:
            return None, True
        found.append(node)
    found += [node for pattern, node in shape.patterns if pattern.search(name)]
    if found:
        return found, name in shape.known
    if isinstance(shape.additional, CompiledSchema):
        return [shape.additional], False
    if not shape.is_test:
        shape.note(name)
        return None, False
    if shape.additional is False:
        raise MismatchError("has a property that the schema forbids")
    return [], False


def _merged(
    steps: list[tuple[str, Callable[[Any], Any], str]],
) -> tuple[tuple[str, Callable[[Any], Any], str], ...]:
    """Make one step of several for the same name: each is given what the one before it made."""
    merged: dict[str, tuple[str, Callable[[Any], Any], str]] = {}
    for name, make, place in steps:
        if name in merged:
            first = merged[name][1]
            make = _in_turn(first, make)  # noqa: PLW2901
        merged[name] = (name, make, place)
    return tuple(merged.values())


def _in_turn(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: second(first(value))


def array_of(
    first: tuple[CompiledSchema, ...], rest: CompiledSchema | None, checks: tuple[Check, ...]
) -> Callable[[Any], Any]:
    """Return the function that makes an array fit: its first items by nodes of their own, the others by ``rest``.

    ``rest`` None means that there may be no others.
    """
    count = len(first)

    def make(value: list[Any]) -> list[Any]:
        if rest is None and len(value) > count:
            raise MismatchError(f"want at most {count} items, has {len(value)}")
        made = value
        for index, item in enumerate(value):
            node = first[index] if index < count else rest
            if node is None or type(item) in node.as_they_are:
                continue
            try:
                fitting = node.make(item)
            except MismatchError as fault:
                fault.steps.append(f"[{index}]")
                raise
            if fitting is not item:
                if made is value:
                    made = value.copy()
                made[index] = fitting
        for check in checks:
            check(made)
        return made

    return make
