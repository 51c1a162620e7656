"""Validation of records against JSON Schema, by jsonschema-rs. No message has a value of a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from balog.tap.catalog import Breadcrumb
from balog.tap.json_schema.keywords import ANNOTATIONS, Steps, is_names, rebuilt, subschemas
from balog.tap.json_schema.mismatch import ANY_NAME, MismatchError, step
from balog.tap.records.plain import unwritable

_DRAFT_4 = "http://json-schema.org/draft-04/schema#"
_SHARED = ("$schema", "$defs", "definitions")
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

    @cached_property
    def _validator(self) -> Any:
        """Return the validator; without ``$schema`` of draft 4, if the schema is not one of a later draft.

        Raises:
            ValueError: it is not a JSON Schema, or has a reference that leads nowhere.
        """
        import jsonschema_rs  # imported for the first schema that needs it

        found = _of_selected(self._schema, self._crumb, self._is_selected)
        if isinstance(found, Mapping):
            shared = {
                name: self._document[name] for name in ("$schema", "$defs", "definitions") if name in self._document
            }
            found = {**shared, **found}
        try:
            return jsonschema_rs.validator_for(found, validate_formats=False, offline=True)
        except ValueError:
            if not isinstance(found, dict) or "$schema" in found:
                raise
            try:
                return jsonschema_rs.validator_for({"$schema": _DRAFT_4, **found}, validate_formats=False, offline=True)
            except ValueError:
                pass
            raise

    def fault(self) -> str:
        """Return why the schema cannot be used, as one line; "" if it can."""
        try:
            self._validator  # noqa: B018
        except ValueError as error:
            return str(error).splitlines()[0]
        return ""

    def is_valid(self, value: Any) -> bool:
        """Return whether a value is valid; one that is not JSON, or whose schema cannot be used, is not."""
        try:
            return bool(self._validator.is_valid(value))
        except ValueError:
            return False

    def check(self, value: Any) -> Any:
        """Return the value.

        Raises:
            MismatchError: it is not valid, or cannot be written.
        """
        try:
            if self._validator.is_valid(value):
                return value
            error = next(self._validator.iter_errors(value))
        except ValueError as refusal:
            raise MismatchError(unwritable(refusal)) from None
        mismatch = MismatchError(_reason(error))
        declared = {steps[-1] for steps, _ in subschemas(self._schema) if steps[-2:-1] == ("properties",)}
        for part in reversed(error.instance_path):
            name = f"[{part}]" if isinstance(part, int) else step(part) if part in declared else ANY_NAME
            mismatch.steps.append(name)
        raise mismatch


def _of_selected(schema: Any, crumb: Breadcrumb, is_selected: Callable[[Breadcrumb], bool]) -> Any:
    """Return a schema that requires no property that is not selected."""
    if not isinstance(schema, dict):
        return schema

    def part(child: Any, steps: Steps) -> Any:
        below = tuple(map(str, steps)) if steps[0] in ("properties", "items") else ()
        return _of_selected(child, (*crumb, *below), is_selected)

    made = rebuilt(schema, part)
    if is_names(made.get("required")):
        required = [name for name in made.pop("required") if is_selected((*crumb, "properties", name))]
        made |= {"required": required} if required else {}
    return made


def _reason(error: Any) -> str:
    if error.kind.name in ("additionalProperties", "unevaluatedProperties"):
        return "has a property that the schema forbids"
    from balog.registry.reasons import describe_error  # imported only for errors: the registry is slow to import

    return describe_error(error)
