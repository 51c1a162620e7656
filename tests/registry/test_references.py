"""Schemas that refer to other documents, and schemas that are true or false."""

import json
from pathlib import Path
from typing import Any

import pytest

from balog.registry import InvalidSchemaError, Registry, Schema, open_registry
from balog.registry.comparing import compare


def schema(type: str, version: str, document: Any) -> Schema:
    return Schema(type, version, "json", json.dumps(document).encode())


@pytest.fixture
def registry(tmp_path: Path):
    """A registry of customers."""
    with open_registry(str(tmp_path)) as registry:
        registry.register(schema("customer", "1.0.0", {"type": "object", "required": ["name"]}))
        yield registry


@pytest.mark.parametrize(
    "reference",
    ["../customer/1.0.0.json", "customer/1.0.0", "../nobody/1.0.0", "https://example.com/a.json", "../../etc/passwd"],
)
def test_a_reference_to_another_document_is_refused(registry: Registry, reference: str):
    document = {"type": "object", "properties": {"customer": {"$ref": reference}}}
    with pytest.raises(InvalidSchemaError, match=r"a \$ref leads into the document itself.*is not present in a"):
        registry.register(schema("order", "1.0.0", document))


@pytest.mark.parametrize(("document", "faults"), [(b"true", 0), (b"false", 1)])
def test_a_schema_may_be_true_or_false(registry: Registry, document: bytes, faults: int):
    registry.register(Schema("any", "1.0.0", "json", document))
    assert len(registry.validator("any").check(b'{"a": 1}')) == faults
    assert registry.get("any").source == document


def test_a_property_of_another_type_beside_unevaluated_ones_breaks():
    old = {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}}
    new = {**old, "properties": {"a": {}, "b": {"type": "string"}}}

    verdict = compare(schema("o", "1.0.0", old), schema("o", "1.1.0", new))

    assert [(found.path, found.undecided) for found in verdict.findings if found.breaks] == [("$.b", False)]
