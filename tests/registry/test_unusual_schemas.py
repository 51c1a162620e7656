"""Schemas that are true or false, and properties beside unevaluated ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from balog.registry import Schema, open_registry
from balog.registry.comparing import compare


def schema(type: str, version: str, document: Any) -> Schema:
    return Schema(type, version, "json", json.dumps(document).encode())


@pytest.mark.parametrize(("document", "faults"), [(b"true", 0), (b"false", 1)])
def test_a_schema_may_be_true_or_false(tmp_path: Path, document: bytes, faults: int):
    with open_registry(str(tmp_path)) as registry:
        registry.register(Schema("any", "1.0.0", "json", document))
        assert len(registry.validator("any").check(b'{"a": 1}')) == faults
        assert registry.get("any").source == document


def test_a_property_of_another_type_beside_unevaluated_ones_breaks():
    old = {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}}
    new = {**old, "properties": {"a": {}, "b": {"type": "string"}}}

    verdict = compare(schema("o", "1.0.0", old), schema("o", "1.1.0", new))

    assert [(found.path, found.undecided) for found in verdict.findings if found.breaks] == [("$.b", False)]
