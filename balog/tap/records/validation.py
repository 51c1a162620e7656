"""Validation of records against JSON Schema, by jsonschema-rs. No message has a value of a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from balog.tap.catalog import Breadcrumb
from balog.tap.json_schema.keywords import ANNOTATIONS, Steps, listed, loosened, rebuilt, subschemas, without
from balog.tap.json_schema.mismatch import ANY_NAME, MismatchError, step
from balog.tap.json_schema.references import keywords_with_reference, target_of
from balog.tap.records.plain import unwritable

_DRAFT_4 = "http://json-schema.org/draft-04/schema#"
_DOCUMENT = "urn:balog:document"
_MOST_INLINED = 1000
_FITTED = ANNOTATIONS | {
    *("$defs", "$id", "$ref", "$schema", "additionalProperties", "definitions", "format", "items", "properties"),
    *("required", "type"),
}
"""Keywords that all values fit which ``Compiler`` has made."""


def needs_validation(schema: Any) -> bool:
    """Return whether a schema restricts values by more than types, formats of times and required properties."""
    return any(
        node is False
        or (isinstance(node, Mapping) and (not node.keys() <= _FITTED or isinstance(node.get("items"), list)))
        for steps, node in subschemas(schema)
        if steps[-1:] != ("additionalProperties",)
    )


class RecordValidator:
    """Validates values that a compiled schema has made: JSON, with a ``Decimal`` for a number with all its digits.

    Args:
        schema: a part of the document.
        document: the root schema, which has the definitions.
        crumb: the breadcrumb of the schema.
        is_selected: returns whether the property at a breadcrumb is written. No other property is required.
    """

    def __init__(
        self, schema: Any, document: Mapping[str, Any], crumb: Breadcrumb, is_selected: Callable[[Breadcrumb], bool]
    ) -> None:
        self._schema, self._document, self._crumb, self._is_selected = schema, document, crumb, is_selected
        self._inlined = 0
        self._refers = False
        self._cuts = 0

    @cached_property
    def _built(self) -> tuple[Any, str]:
        """The validator, and why there is none: "" if there is one.

        A schema without ``$schema`` that is not one of the latest draft is one of draft 4.
        """
        import jsonschema_rs  # imported for the first schema that needs it

        selected_schema, registry, reason = self._selected(self._schema, self._crumb, ()), None, ""
        declared = self._document.get("$schema")
        for head in [{"$schema": declared}] if declared is not None else [{}, {"$schema": _DRAFT_4}]:
            schema = {**head, **selected_schema} if isinstance(selected_schema, dict) else selected_schema
            try:
                if self._refers:
                    document = {**head, **self._selected(self._document, (), None)}
                    registry = jsonschema_rs.Registry([(_DOCUMENT, document)])
                validator = jsonschema_rs.validator_for(
                    schema, validate_formats=False, offline=True, registry=registry, mask="…"
                )
                return validator, ""
            except ValueError as error:
                reason = reason or str(error).splitlines()[0]
        return None, reason

    def _selected(self, schema: Any, crumb: Breadcrumb, within: tuple[str, ...] | None) -> Any:
        """Return a schema that requires no property that is not selected.

        Args:
            within: the references that lead to the schema. Their targets are put in their places, where the selection
                is known, except recursive ones and those after very many. None leaves all references.
        """
        if not isinstance(schema, dict):
            return schema
        reference, targets, before = schema.get("$ref"), [], self._cuts
        if isinstance(reference, str) and reference.startswith("#"):
            targets = [self._target(reference, crumb, within)]
            schema = keywords_with_reference(schema, self._document)
            if not schema:
                return targets[0]

        cut: set[str | int] = {"$ref"} if self._cuts > before else set()

        def part(child: Any, steps: Steps) -> Any:
            below = tuple(map(str, steps)) if steps[0] in ("properties", "items") else ()
            before = self._cuts
            subschema = self._selected(child, (*crumb, *below), within)
            if self._cuts > before:
                cut.add(steps[0])
            return subschema

        selected = without(schema, lambda name: not self._is_selected((*crumb, "properties", name)))
        self._cuts += selected != without(schema, lambda name: False)
        loose_schema = loosened(rebuilt(selected, part), cut)
        return {**loose_schema, "allOf": [*listed(loose_schema, "allOf"), *targets]} if targets else loose_schema

    def _target(self, reference: str, crumb: Breadcrumb, within: tuple[str, ...] | None) -> Any:
        if within is not None and reference not in within and self._inlined < _MOST_INLINED:
            with suppress(LookupError):
                target = target_of(reference, self._document)
                self._inlined += 1
                return self._selected(target, crumb, (*within, reference))
        self._refers = True
        return {"$ref": _DOCUMENT + reference}

    def fault(self) -> str:
        """Return why the schema cannot be used, as one line; "" if it can. All values are valid if it cannot."""
        return self._built[1]

    def is_valid(self, value: Any) -> bool:
        """Return whether a value is valid; one that is not JSON is not."""
        validator, _ = self._built
        try:
            return validator is None or bool(validator.is_valid(value))
        except ValueError:
            return False

    def check(self, value: Any) -> Any:
        """Return the value.

        Raises:
            MismatchError: it is not valid, or cannot be written.
        """
        validator, _ = self._built
        try:
            if validator is None or validator.is_valid(value):
                return value
            error = next(validator.iter_errors(value))
        except ValueError as refusal:
            raise MismatchError(unwritable(refusal)) from None
        mismatch = MismatchError(_reason(error))
        declared = {steps[-1] for steps, _ in subschemas(self._schema) if steps[-2:-1] == ("properties",)}
        for part in reversed(error.instance_path):
            name = f"[{part}]" if isinstance(part, int) else step(part) if part in declared else ANY_NAME
            mismatch.steps.append(name)
        raise mismatch


def _reason(error: Any) -> str:
    if error.kind.name in ("additionalProperties", "unevaluatedProperties"):
        return "has a property that the schema forbids"
    from balog.registry.reasons import describe_error  # imported only for errors: the registry is slow to import

    return describe_error(error)
