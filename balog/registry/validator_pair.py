"""The two validators of JSON Schema side by side. A payload on which they disagree shows a defect of balog."""

from __future__ import annotations

from typing import Any

import msgspec

from balog.errors import MissingExtraError
from balog.registry.json_compiler import compile_schema
from balog.registry.reference import ReferenceValidator
from balog.registry.schema import InvalidSchemaError

_MOST_TRIED = 200


class ValidatorPair:
    """A schema compiled by jsonschema-rs and by jsonschema. Formats are left out: jsonschema checks few of them.

    Raises:
        InvalidSchemaError: jsonschema cannot read the schema.
        MissingExtraError: one of the two packages is not installed.
    """

    def __init__(self, document: Any) -> None:
        try:
            self._fast = compile_schema(document, formats=False)
            self._reference = ReferenceValidator(document, formats=False)
        except ImportError:
            raise MissingExtraError("comparing two validators", "schema") from None

    def disagreement(self, payload: Any) -> str:
        """Return one line if the validators disagree on a decoded payload; "" if they agree.

        Raises:
            ValueError: the payload is nested too deep, or a reference leads nowhere.
        """
        is_valid = self._fast.is_valid(payload)
        if is_valid == self._reference.is_valid(payload):
            return ""
        words = "valid" if is_valid else "invalid"
        return f"jsonschema-rs calls it {words}, jsonschema does not; this is a defect of balog, please report it"


def disagreements(document: Any) -> list[str]:
    """Return a line for each payload suggested by the schema itself on which the two validators disagree."""
    import jsonschema_rs

    from balog.registry.comparing.document import SchemaDocument
    from balog.registry.comparing.examples import suggest_payloads

    if not isinstance(document, dict):
        return []
    try:
        pair = ValidatorPair(document)
        payloads = suggest_payloads(SchemaDocument(document))
    except (ValueError, InvalidSchemaError, jsonschema_rs.ValidationError):  # one does not know the pattern's syntax
        return []
    found = [(payload, pair.disagreement(payload)) for payload in payloads[:_MOST_TRIED]]
    return [f"on {msgspec.json.encode(payload).decode()[:200]}: {reason}" for payload, reason in found if reason]
