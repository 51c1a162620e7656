"""Validators of a tap's schemas: of the draft that a schema names, else of 2020-12, else of draft 4."""

from __future__ import annotations

from typing import Any

from balog.registry.json_schema import JsonValidator
from balog.registry.schema import InvalidSchemaError

__all__ = ["validator_for"]

_DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def validator_for(schema: dict[str, Any]) -> JsonValidator:
    """Return a validator. Taps seldom name a draft, and ``exclusiveMaximum: true`` of database taps is draft 4.

    Raises:
        InvalidSchemaError: the schema is invalid in each of these drafts.
        MissingExtraError: jsonschema-rs is not installed.
    """
    try:
        return JsonValidator(schema)
    except InvalidSchemaError:
        if "$schema" in schema:
            raise
        try:
            return JsonValidator({"$schema": _DRAFT_4, **schema})
        except InvalidSchemaError:
            pass
        raise
