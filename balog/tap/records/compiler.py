"""Compilation of a JSON Schema to a function that makes values fit it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from balog.tap.catalog import Breadcrumb
from balog.tap.errors import TapError
from balog.tap.json_schema.checks import ASKS, Check, choices, limits_of
from balog.tap.json_schema.keywords import ALL_TYPES, COMBINING, listed, names_of, required_of, types_of
from balog.tap.json_schema.mismatch import TYPE_WORDS, MismatchError, step, type_name
from balog.tap.json_schema.references import target_of
from balog.tap.records.objects import CompiledSchema, ObjectRules, array_of, object_of
from balog.tap.records.plain import simplify
from balog.tap.records.times import FORMATS, EpochUnit, from_epoch
from balog.tap.records.values import (
    ANYTHING,
    NOTHING,
    TO,
    anything,
    as_it_is,
    checked,
    fitting_any,
    fitting_none,
    fitting_one,
    fitting_when,
    formatted,
    real,
    refuse,
    whole,
)

_MAX_DEPTH = 32
_NUMBERS = frozenset({int, float, Decimal})
_DEEPER = ("…",)


@dataclass
class Compiler:
    """Compiles the schemas of one document.

    Args:
        document: the root schema, in which references are resolved.
        is_selected: returns whether the property at a breadcrumb is written.
        epoch: the unit of numbers where the schema expects a time; None means that numbers are not times.
        note: called with the place and name of each property that no schema declares.
    """

    document: Mapping[str, Any]
    is_selected: Callable[[Breadcrumb], bool]
    epoch: EpochUnit | None
    note: Callable[[str, str], None]
    _references: dict[tuple[str, Breadcrumb, bool, bool], CompiledSchema] = field(default_factory=dict)

    def compile(self, schema: Any, crumb: Breadcrumb = (), *, coerces: bool, is_test: bool = False) -> CompiledSchema:
        """Compile a schema of the document.

        Args:
            schema: an object or a boolean.
            crumb: the breadcrumb of the schema, as in metadata.
            coerces: whether values of other types are coerced without loss.
            is_test: whether objects keep all properties, so that ``additionalProperties: false`` causes a mismatch.

        Raises:
            TapError: a reference has no target in the document.
        """
        if schema is False:
            return CompiledSchema(frozenset(), refuse)
        if not isinstance(schema, Mapping) or not schema:  # true and invalid schemas allow anything
            return ANYTHING
        if isinstance(reference := schema.get("$ref"), str):
            return self._referred(reference, crumb, coerces, is_test)
        parts = [name for name in COMBINING if name in schema]
        if not parts:
            return self._typed(schema, crumb, coerces, is_test, ())
        return self._combined(schema, crumb, coerces, is_test)

    # -- references ---------------------------------------------------------------------------------------------------

    def _referred(self, reference: str, crumb: Breadcrumb, coerces: bool, is_test: bool) -> CompiledSchema:
        """Compile the target of a reference at its first value, because it can reference itself."""
        # A recursive schema has endless places; metadata has a maximum depth.
        key = (reference, crumb if len(crumb) <= _MAX_DEPTH else _DEEPER, coerces, is_test)
        if key not in self._references:
            target = self._target(reference)
            made: list[CompiledSchema] = []

            def make(value: Any) -> Any:
                if not made:
                    made.append(self.compile(target, key[1], coerces=coerces, is_test=is_test))
                return made[0].make(value)

            self._references[key] = CompiledSchema(frozenset(), make)
        return self._references[key]

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#"):
            raise TapError(f"a schema refers to {reference[:100]!r}, which is not in it; resolve it first")
        try:
            return target_of(reference, self.document)
        except LookupError as error:
            raise TapError(f"a schema refers to {reference[:100]!r}, which does not exist: {error}") from None

    # -- one schema of several ----------------------------------------------------------------------------------------

    def _combined(self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, is_test: bool) -> CompiledSchema:
        """Compile a schema with ``anyOf`` and similar keywords: first its other keywords, then each of these."""
        own = {name: value for name, value in schema.items() if name not in (*COMBINING, "then", "else")}
        other_names = names_of(schema) if "properties" in own or "allOf" in schema else ()
        # If several parts declare names, no part may leave out the names of another.
        inner_test = is_test or bool(other_names)
        steps: list[Callable[[Any], Any]] = []
        for part in listed(schema, "allOf"):
            steps.append(self.compile(part, crumb, coerces=coerces, is_test=inner_test).make)
        if alternatives := listed(schema, "anyOf"):
            steps.append(self._any(alternatives, crumb, coerces, inner_test))
        if alternatives := listed(schema, "oneOf"):
            make_any = self._any(alternatives, crumb, coerces, inner_test)
            steps.append(fitting_one(make_any, [self._test(part, crumb) for part in alternatives]))
        if "not" in schema:
            steps.append(fitting_none(self._test(schema["not"], crumb)))
        if "if" in schema:
            steps.append(self._if(schema, crumb, coerces, inner_test))
        if "type" in own or any(name in own for name in ASKS):
            steps.insert(0, self._typed(own, crumb, coerces, is_test, other_names).make)
        elif other_names:  # only allOf declares names
            steps.append(self._typed({"properties": {}}, crumb, coerces, is_test, other_names).make)

        tests: list[Callable[[Any], Any]] = []

        def make(value: Any) -> Any:
            is_changed = False
            for index, fit in enumerate(steps):
                before, value = value, fit(value)
                is_changed = is_changed or (index > 0 and value is not before)
            if coerces and is_changed:  # a later part may have coerced the value to what an earlier part forbids
                if not tests:
                    tests.append(self._test(schema, crumb))
                tests[0](value)
            return value

        return CompiledSchema(frozenset(), make)

    def _any(self, alternatives: list[Any], crumb: Breadcrumb, coerces: bool, is_test: bool) -> Callable[[Any], Any]:
        strict = [self.compile(part, crumb, coerces=False, is_test=is_test).make for part in alternatives]
        loose = [self.compile(part, crumb, coerces=True, is_test=is_test).make for part in alternatives if coerces]
        return fitting_any(strict, loose)

    def _test(self, schema: Any, crumb: Breadcrumb) -> Callable[[Any], Any]:
        return self.compile(schema, crumb, coerces=False, is_test=True).make

    def _if(self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, is_test: bool) -> Callable[[Any], Any]:
        then = self.compile(schema.get("then", True), crumb, coerces=coerces, is_test=is_test or "then" not in schema)
        other = self.compile(schema.get("else", True), crumb, coerces=coerces, is_test=is_test or "else" not in schema)
        return fitting_when(self._test(schema["if"], crumb), then.make, other.make)

    # -- types --------------------------------------------------------------------------------------------------------

    def _typed(
        self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, is_test: bool, other_names: tuple[str, ...]
    ) -> CompiledSchema:
        types = types_of(schema) or ALL_TYPES
        is_nullable = "null" in types
        makers: dict[type, Callable[[Any], Any]] = {}
        chosen = choices(schema)
        if is_nullable:
            makers[type(None)] = as_it_is
        if "boolean" in types:
            makers[bool] = as_it_is
        if "number" in types or "integer" in types:
            checks = limits_of(schema, "number")
            makers[int] = checked(as_it_is, checks)
            as_text = self._string(schema, False, coerces) if coerces and "string" in types else None
            number = checked(whole(as_text) if "number" not in types else as_it_is, checks)
            for kind in (float, Decimal):
                makers[kind] = real(kind, is_nullable and coerces, number)
        if "string" in types:
            makers[str] = self._string(schema, is_nullable, coerces)
        if "array" in types:
            makers[list] = self._array(schema, crumb, coerces, is_test)
        if "object" in types:
            makers[dict] = self._object(schema, crumb, coerces, is_test, other_names)
        as_they_are = frozenset(kind for kind, maker in makers.items() if maker is as_it_is and not chosen)
        make = self._dispatch(schema, types, makers, chosen, coerces)
        return CompiledSchema(as_they_are, make, {} if chosen else makers)

    def _dispatch(
        self,
        schema: Mapping[str, Any],
        types: tuple[str, ...],
        makers: dict[type, Callable[[Any], Any]],
        chosen: list[Check],
        coerces: bool,
    ) -> Callable[[Any], Any]:
        # Try the types in the schema's order, with null last as the least informative.
        targets = [TO[name] for name in sorted(types, key="null".__eq__) if name in TO] if coerces else []
        wanted = "want " + " or ".join(TYPE_WORDS.get(name, name) for name in types)
        epoch, hint = None, ""
        if "string" in types and schema.get("format") in FORMATS:  # other types do not become formatted strings
            targets = [target for target in targets if target is not TO["string"]]
            wanted = wanted.replace("a string", f"a string of the format {schema['format']}")
            if schema["format"] == "date-time" and "integer" not in types and "number" not in types:
                epoch, hint = self.epoch, "" if self.epoch else "; the stream's setting epoch converts numbers"

        def make(value: Any) -> Any:
            maker = makers.get(type(value))
            if maker is None:
                simple = simplify(value)
                maker = makers.get(type(simple))
                if maker is None:
                    simple, maker = convert(simple, value)
                value = simple
            value = maker(value)
            for check in chosen:
                check(value)
            return value

        def convert(value: Any, given: Any) -> tuple[Any, Callable[[Any], Any]]:
            if epoch is not None and type(value) in _NUMBERS and (made := from_epoch(value, epoch)) is not None:
                return made, makers[str]
            if type(value) in (dict, list):
                value = anything(value)
            for target in targets:
                made = target(value)
                if made is not NOTHING and (maker := makers.get(type(made))) is not None:
                    return made, maker
            raise MismatchError(f"{wanted}, got {type_name(given)}{hint if type(value) in _NUMBERS else ''}")

        return make

    def _string(self, schema: Mapping[str, Any], is_nullable: bool, coerces: bool) -> Callable[[Any], Any]:
        format = schema.get("format")
        maker: Callable[[Any], Any] = as_it_is
        if isinstance(format, str) and format in FORMATS:
            maker = formatted(format, is_nullable, coerces)
        return checked(maker, limits_of(schema, "string"))

    def _array(
        self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, is_test: bool
    ) -> Callable[[Any], Any]:
        below = (*crumb, "items")
        items = schema.get("items", True)
        first = schema.get("prefixItems", [])
        if isinstance(items, list):  # before 2020-12
            first, items = items, schema.get("additionalItems", True)
        nodes = tuple(self.compile(part, below, coerces=coerces, is_test=is_test) for part in first)
        rest = None if items is False and nodes else self.compile(items, below, coerces=coerces, is_test=is_test)
        return array_of(nodes, rest, tuple(limits_of(schema, "array")))

    def _object(
        self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, is_test: bool, other_names: tuple[str, ...]
    ) -> Callable[[Any], Any]:
        known: dict[str, CompiledSchema | None] = {}
        properties = schema.get("properties")
        for name, part in properties.items() if isinstance(properties, Mapping) else ():
            below = (*crumb, "properties", name)
            known[name] = (
                self.compile(part, below, coerces=coerces, is_test=is_test) if self.is_selected(below) else None
            )
        additional_schema = schema.get("additionalProperties")
        patterns: list[tuple[re.Pattern[str], CompiledSchema]] = []
        patterned = schema.get("patternProperties")
        for pattern, part in patterned.items() if isinstance(patterned, Mapping) else ():
            try:
                search = re.compile(pattern)
            except re.error:  # of another dialect: it could match any name, so all are kept
                additional_schema = True
                continue
            patterns.append((search, self.compile(part, (*crumb, "properties"), coerces=coerces, is_test=is_test)))
        additional: CompiledSchema | bool | None = None
        if additional_schema is False:
            additional = False
        elif additional_schema is True or (additional_schema is None and (is_test or not (known or patterns))):
            additional = ANYTHING
        elif additional_schema is not None:
            additional = self.compile(additional_schema, (*crumb, "properties"), coerces=coerces, is_test=is_test)
        if additional is None:  # names that other parts declare or require are known
            for name in (*other_names, *required_of(schema)):
                known.setdefault(name, ANYTHING if self.is_selected((*crumb, "properties", name)) else None)
        needed = tuple(name for name in required_of(schema) if known.get(name, ANYTHING) is not None)
        where = _place(crumb)
        note = self.note
        shape = ObjectRules(
            known,
            tuple(patterns),
            additional,
            needed,
            is_test,
            lambda name: note(where, name),
            tuple(limits_of(schema, "object")),
        )
        return object_of(shape)


def _place(crumb: Breadcrumb) -> str:
    """Return a breadcrumb as a JSONPath."""
    parts = iter(crumb)
    return "$" + "".join(step(next(parts, "")) if part == "properties" else "[*]" for part in parts)
