"""References to other registered types, and schemas that are true or false."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.registry import IncompatibleError, InvalidSchemaError, Registry, Schema, open_registry
from balog.registry.comparing import compare
from tests.service.serving import put_schema

CUSTOMER = {"type": "object", "required": ["name"], "properties": {"name": {"$ref": "#/$defs/name"}},
            "$defs": {"name": {"type": "string", "minLength": 1}}}  # fmt: skip


def schema(type: str, version: str, document: Any) -> Schema:
    return Schema(type, version, "json", json.dumps(document).encode())


def order(reference: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"customer": {"$ref": reference}}}


@pytest.fixture
def registry(tmp_path: Path):
    """A registry of customers."""
    with open_registry(str(tmp_path)) as registry:
        registry.register(schema("customer", "1.0.0", CUSTOMER))
        yield registry


@pytest.mark.parametrize(
    "reference", ["../customer/1.0.0.json", "../customer/1.0.0", "customer/1.0.0", "/v1/schemas/customer/1.0.0"]
)
def test_a_reference_to_a_registered_type_holds_payloads_against_it(registry: Registry, reference: str):
    registry.register(schema("order", "1.0.0", order(reference)))
    validator = registry.validator("order")

    assert validator.check(b'{"customer": {"name": "a"}}') == []
    assert validator.check(b'{"customer": {"name": ""}}') == [("$.customer.name", "is shorter than 1 character")]
    assert json.loads(registry.original("order").source) == order(reference)


def test_a_reference_may_lead_into_the_other_type_and_through_further_ones(tmp_path: Path):
    put_schema(tmp_path, "customer", "1.0.0", CUSTOMER)
    put_schema(tmp_path, "name", "1.0.0", {"$ref": "../customer/1.0.0.json#/$defs/name"})
    put_schema(tmp_path, "node", "1.0.0", {"properties": {"next": {"$ref": "#"}, "name": {"$ref": "../name/1.0.0"}}})
    put_schema(tmp_path, "list", "1.0.0", {"properties": {"first": {"$ref": "../node/1.0.0.json"}}})
    with open_registry(str(tmp_path)) as registry:
        found = registry.validator("list").check(b'{"first": {"next": {"next": {"name": ""}}}}')

    assert found == [("$.first.next.next.name", "is shorter than 1 character")]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("../customer/9.0.0.json", "the registry has no version '9.0.0' of customer"),
        ("../nobody/1.0.0.json", "the registry knows no type 'nobody'"),
        ("../customer/1.0.0.json#/$defs/none", "does not exist"),
        ("https://example.com/a.json", "is not present in a registry"),
        ("../../etc/passwd", "is not present in a registry"),
    ],
)
def test_a_reference_to_what_is_not_there_is_refused(registry: Registry, reference: str, said: str):
    with pytest.raises(InvalidSchemaError, match=said):
        registry.register(schema("order", "1.0.0", order(reference)))


def test_a_later_version_of_a_type_that_is_referred_to_is_compared(registry: Registry):
    registry.register(schema("customer", "2.0.0", {**CUSTOMER, "required": ["name", "vat"]}))
    registry.register(schema("order", "1.0.0", order("../customer/1.0.0.json")))
    with pytest.raises(IncompatibleError, match=r"least version is 2\.0\.0"):
        registry.register(schema("order", "1.1.0", order("../customer/2.0.0.json")))


def test_the_commands_follow_references(tmp_path: Path):
    put_schema(tmp_path, "customer", "1.0.0", CUSTOMER)
    put_schema(tmp_path, "order", "1.0.0", order("../customer/1.0.0.json"))
    (tmp_path / "draft.json").write_text(json.dumps(order("customer/1.0.0")))
    (tmp_path / "p.jsonl").write_text('{"cls_type": "order", "customer": {}}\n')
    words = ["--registry", str(tmp_path)]
    for command in (["validate", "p.jsonl"], ["validate", "--schema", "draft.json", "p.jsonl"]):
        run = CliRunner().invoke(main, ["schema", *(str(tmp_path / w) if "." in w else w for w in command), *words])
        assert '$.customer: "name" is a required property' in run.output
    run = CliRunner().invoke(main, ["schema", "check", "order/1.0.0", str(tmp_path / "draft.json"), *words])
    assert run.exit_code == 0


@pytest.mark.parametrize(("document", "faults"), [(b"true", 0), (b"false", 1)])
def test_a_schema_may_be_true_or_false(registry: Registry, document: bytes, faults: int):
    registry.register(Schema("any", "1.0.0", "json", document))
    assert len(registry.validator("any").check(b'{"a": 1}')) == faults
    assert registry.original("any").source == document


def test_a_property_of_another_type_beside_unevaluated_ones_breaks():
    old = {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}}
    new = {**old, "properties": {"a": {}, "b": {"type": "string"}}}

    verdict = compare(schema("o", "1.0.0", old), schema("o", "1.1.0", new))

    assert [(found.path, found.undecided) for found in verdict.findings if found.breaks] == [("$.b", False)]
