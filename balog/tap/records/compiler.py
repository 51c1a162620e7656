"""Compilation of a JSON Schema to a function that makes values fit it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from balog.tap.catalog import Breadcrumb
from balog.tap.errors import TapError
from balog.tap.json_schema.keywords import ALL_TYPES, DEPENDENT, listed, names_of, required_of, types_of
from balog.tap.json_schema.mismatch import TYPE_WORDS, MismatchError, step, type_name
from balog.tap.json_schema.references import keywords_with_reference, target_of
from balog.tap.records.objects import CompiledSchema, ObjectRules, array_of, object_of
from balog.tap.records.plain import simplify
from balog.tap.records.times import FORMATS, EpochUnit, from_epoch
from balog.tap.records.validation import RecordValidator
from balog.tap.records.values import ANYTHING, NOTHING, TO, anything, as_it_is, fitting_any, formatted, real, whole

_MAX_DEPTH = 32
_NUMBERS = frozenset({int, float, Decimal})
_DEEPER = ("…",)
_NO_NAMES: Mapping[str, int] = {}
_STRUCTURE = frozenset(
    (
        *("additionalItems", "additionalProperties", "format", "items", "patternProperties", "prefixItems"),
        *("properties", "required", "type"),
    )
)
"""Keywords by which values are made; jsonschema-rs checks all others."""
_COMBINING = frozenset(("$ref", "allOf", "anyOf", "else", "if", "not", "oneOf", "then"))
_CLOSING = frozenset(("additionalProperties", "allOf", "patternProperties", "properties"))
"""Keywords beside which a part leaves out no property."""


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
    _references: dict[tuple[Any, ...], CompiledSchema] = field(default_factory=dict)

    def compile(
        self,
        schema: Any,
        crumb: Breadcrumb = (),
        *,
        coerces: bool,
        keeps: bool = False,
        others: Mapping[str, int] = _NO_NAMES,
    ) -> CompiledSchema:
        """Compile a schema of the document.

        Args:
            schema: an object or a boolean.
            crumb: the breadcrumb of the schema, as in metadata.
            coerces: whether values of other types are coerced without loss.
            keeps: whether objects keep properties that no schema declares.
            others: the names that this schema and those beside it declare; see ``names_of``.

        Raises:
            TapError: a reference has no target in the document.
        """
        if not isinstance(schema, Mapping) or not schema:
            return ANYTHING
        reference = schema.get("$ref")
        if isinstance(reference, str) and not keywords_with_reference(schema, self.document):
            return self._referred(reference, crumb, coerces, keeps, others)
        if _COMBINING.isdisjoint(schema) and not any(name in schema for name in DEPENDENT):
            return self._typed(schema, crumb, coerces, keeps, others)
        return self._combined(schema, crumb, coerces, keeps, others)

    # -- references ---------------------------------------------------------------------------------------------------

    def _referred(
        self, reference: str, crumb: Breadcrumb, coerces: bool, keeps: bool, others: Mapping[str, int]
    ) -> CompiledSchema:
        """Compile the target of a reference at its first value, because it can reference itself."""
        # A recursive schema has endless places; metadata has a maximum depth.
        position = crumb if len(crumb) <= _MAX_DEPTH else _DEEPER
        key = (reference, position, coerces, keeps, tuple(others.items()))
        if key not in self._references:
            target = self._target(reference)
            compiled: list[CompiledSchema] = []

            def make(value: Any) -> Any:
                if not compiled:
                    compiled.append(self.compile(target, position, coerces=coerces, keeps=keeps, others=others))
                return compiled[0].make(value)

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

    def _combined(
        self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, keeps: bool, others: Mapping[str, int]
    ) -> CompiledSchema:
        """Compile a schema with ``anyOf`` and similar keywords: first its other keywords, then each of these."""
        own = {name: value for name, value in schema.items() if name not in _COMBINING}
        # If several parts declare names, no part may leave out the names of another.
        names = {**names_of(schema, self._target, set()), **others}
        inner_keeps = keeps or (bool(names) and not _CLOSING.isdisjoint(schema))

        def compiled(part: Any) -> Callable[[Any], Any]:
            return self.compile(part, crumb, coerces=coerces, keeps=inner_keeps, others=names).make

        steps: list[Callable[[Any], Any]] = []
        if not _STRUCTURE.isdisjoint(own):
            steps.append(self._typed(own, crumb, coerces, keeps, names).make)
        reference = [{"$ref": schema["$ref"]}] if "$ref" in schema else []
        steps += map(compiled, [*reference, *listed(schema, "allOf")])
        for keyword in ("anyOf", "oneOf"):
            if alternatives := listed(schema, keyword):
                fits = [*map(compiled, alternatives)]
                steps.append(fitting_any(fits, [self.validator(part, crumb) for part in alternatives]))
        if not steps:
            return ANYTHING

        def make(value: Any) -> Any:
            for fit in steps:
                value = fit(value)
            return value

        return CompiledSchema(frozenset(), make)

    def validator(self, schema: Any, crumb: Breadcrumb = ()) -> RecordValidator:
        """Return the validator of a schema of the document."""
        return RecordValidator(schema, self.document, crumb, self.is_selected)

    # -- types --------------------------------------------------------------------------------------------------------

    def _typed(
        self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, keeps: bool, others: Mapping[str, int]
    ) -> CompiledSchema:
        types = types_of(schema) or ALL_TYPES
        is_nullable = "null" in types
        makers: dict[type, Callable[[Any], Any]] = {}
        if is_nullable:
            makers[type(None)] = as_it_is
        if "boolean" in types:
            makers[bool] = as_it_is
        if "number" in types or "integer" in types:
            makers[int] = as_it_is
            as_text = self._string(schema, False, coerces) if coerces and "string" in types else None
            number = whole(as_text) if "number" not in types else as_it_is
            for kind in (float, Decimal):
                makers[kind] = real(kind, is_nullable and coerces, number)
        if "string" in types:
            makers[str] = self._string(schema, is_nullable, coerces)
        if "array" in types:
            makers[list] = self._array(schema, crumb, coerces, keeps)
        if "object" in types:
            makers[dict] = self._object(schema, crumb, coerces, keeps, others)
        as_they_are = frozenset(kind for kind, maker in makers.items() if maker is as_it_is)
        return CompiledSchema(as_they_are, self._dispatch(schema, types, makers, coerces), makers)

    def _dispatch(
        self,
        schema: Mapping[str, Any],
        types: tuple[str, ...],
        makers: dict[type, Callable[[Any], Any]],
        coerces: bool,
    ) -> Callable[[Any], Any]:
        # Try the types in the schema's order, with null last as the least informative.
        targets = [TO[name] for name in sorted(types, key="null".__eq__) if name in TO] if coerces else []
        wanted = "expected " + " or ".join(TYPE_WORDS.get(name, name) for name in types)
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
            return maker(value)

        def convert(value: Any, given: Any) -> tuple[Any, Callable[[Any], Any]]:
            if epoch is not None and type(value) in _NUMBERS and (text := from_epoch(value, epoch)) is not None:
                return text, makers[str]
            if type(value) in (dict, list):
                value = anything(value)
            for target in targets:
                candidate = target(value)
                if candidate is not NOTHING and (maker := makers.get(type(candidate))) is not None:
                    return candidate, maker
            raise MismatchError(f"{wanted}, got {type_name(given)}{hint if type(value) in _NUMBERS else ''}")

        return make

    def _string(self, schema: Mapping[str, Any], is_nullable: bool, coerces: bool) -> Callable[[Any], Any]:
        format = schema.get("format")
        if isinstance(format, str) and format in FORMATS:
            return formatted(format, is_nullable, coerces)
        return as_it_is

    def _array(self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, keeps: bool) -> Callable[[Any], Any]:
        below = (*crumb, "items")
        items = schema.get("items", True)
        first = schema.get("prefixItems", [])
        if isinstance(items, list):  # before 2020-12
            first, items = items, schema.get("additionalItems", True)
        nodes = tuple(self.compile(part, below, coerces=coerces, keeps=keeps) for part in first)
        return array_of(nodes, self.compile(items, below, coerces=coerces, keeps=keeps))

    def _object(
        self, schema: Mapping[str, Any], crumb: Breadcrumb, coerces: bool, keeps: bool, others: Mapping[str, int]
    ) -> Callable[[Any], Any]:
        known: dict[str, CompiledSchema | None] = {}
        properties = schema.get("properties")
        for name, part in properties.items() if isinstance(properties, Mapping) else ():
            below = (*crumb, "properties", name)
            inner_keeps = keeps or others.get(name, 0) > 1
            is_selected = self.is_selected(below)
            known[name] = self.compile(part, below, coerces=coerces, keeps=inner_keeps) if is_selected else None
        additional_schema = schema.get("additionalProperties")
        patterns: list[tuple[re.Pattern[str], CompiledSchema]] = []
        patterned = schema.get("patternProperties")
        for pattern, part in patterned.items() if isinstance(patterned, Mapping) else ():
            try:
                search = re.compile(pattern)
            except re.error:  # of another dialect: it could match any name, so all are kept
                additional_schema = True
                continue
            patterns.append((search, self.compile(part, (*crumb, "properties"), coerces=coerces, keeps=keeps)))
        additional: CompiledSchema | bool | None = None
        if additional_schema is False:
            additional = False
        elif additional_schema is True or (additional_schema is None and (keeps or not (known or patterns))):
            additional = ANYTHING
        elif additional_schema is not None:
            additional = self.compile(additional_schema, (*crumb, "properties"), coerces=coerces, keeps=keeps)
        if additional is None:  # names that other parts declare or require are known
            for name in (*others, *required_of(schema)):
                known.setdefault(name, ANYTHING if self.is_selected((*crumb, "properties", name)) else None)
        needed = tuple(name for name in required_of(schema) if self.is_selected((*crumb, "properties", name)))
        where = _place(crumb)
        note = self.note
        shape = ObjectRules(
            known,
            tuple(patterns),
            additional,
            needed,
            keeps,
            lambda name: note(where, name),
        )
        return object_of(shape)


def _place(crumb: Breadcrumb) -> str:
    """Return a breadcrumb as a JSONPath."""
    parts = iter(crumb)
    return "$" + "".join(step(next(parts, "")) if part == "properties" else "[*]" for part in parts)
