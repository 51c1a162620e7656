"""Proofs: never a wrong yes."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schema_pairs import json_schema, pairs, payloads

from balog.registry.comparing import compare
from balog.registry.comparing.document import SchemaDocument, covers
from balog.registry.comparing.open_content import assume_open_content

by_chance = settings(max_examples=75, suppress_health_check=list(HealthCheck), deadline=None)


def takes(document: Any) -> Any:
    return jsonschema_rs.validator_for(document, validate_formats=True).is_valid


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@by_chance
@given(pairs(), st.data())
def test_what_is_proved_to_be_covered_is_taken(pair: tuple[Any, Any], data: st.DataObject) -> None:
    old, new = pair
    if covers(SchemaDocument(new), SchemaDocument(old)) == "yes":
        payload = data.draw(payloads(old, old))
        assert takes(new)(payload) or not takes(old)(payload)


@by_chance
@given(pairs(), st.data())
def test_what_keeps_the_promise_is_taken_where_that_is_proved(pair: tuple[Any, Any], data: st.DataObject) -> None:
    old, new = pair
    held = assume_open_content(SchemaDocument(old), SchemaDocument(new))
    if covers(SchemaDocument(new), held) == "yes":
        payload = data.draw(payloads(old, old))
        assert takes(new)(payload) or not (takes(old)(payload) and takes(held.root)(payload))


@by_chance
@given(pairs(), st.sampled_from(["backward", "forward", "full"]), st.booleans())
def test_a_verdict_holds_together(pair: Any, mode: Any, open: bool) -> None:
    old, new = pair

    verdict = compare(json_schema(old), json_schema(new, "1.1.0"), mode, open=open)

    assert verdict.compatible == (not any(finding.breaks for finding in verdict.findings))
    assert (verdict.bump == "major") == (not verdict.compatible)


TREE = {"$ref": "#/$defs/tree"}


def tree(value: Any, **more: Any) -> dict[str, Any]:
    return {"$defs": {"tree": {**objects(value=value, inner={"type": "array", "items": TREE}), **more}}, **TREE}


INTEGER, NUMBER, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}

COVERED = {
    "a reference instead of what it leads to": (
        objects(a=TEXT),
        {"$defs": {"o": objects(a=TEXT)}, "$ref": "#/$defs/o"},
    ),
    "a reference by the document's name": (
        {"$id": "urn:a", "$defs": {"o": objects(a=INTEGER)}, "$ref": "#/$defs/o"},
        {"$id": "urn:b", "$defs": {"o": objects(a=NUMBER)}, "$ref": "urn:b#/$defs/o"},
    ),
    "one more alternative": (
        {"anyOf": [objects(a=INTEGER), TEXT]},
        {"anyOf": [objects(a=INTEGER), TEXT, INTEGER]},
    ),
    "a map of what widens": (
        objects(m={"type": "object", "additionalProperties": INTEGER}),
        objects(m={"type": "object", "additionalProperties": NUMBER}),
    ),
}


@pytest.mark.parametrize("case", COVERED)
def test_is_covered(case: str) -> None:
    old, new = COVERED[case]

    assert covers(SchemaDocument(new), SchemaDocument(old)) == "yes"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (tree(INTEGER), tree(NUMBER)),
        (tree(INTEGER, required=["value"]), tree(INTEGER)),
        COVERED["a map of what widens"],
    ],
)
def test_the_other_way_round_is_not_covered(old: Any, new: Any) -> None:
    assert covers(SchemaDocument(old), SchemaDocument(new)) != "yes"
    assert not compare(json_schema(new), json_schema(old, "1.1.0")).compatible


def test_a_recursive_schema_is_compatible_with_itself_and_undecided_with_another() -> None:
    same, other = (compare(json_schema(tree(INTEGER)), json_schema(tree(one), "1.1.0")) for one in (INTEGER, NUMBER))

    assert same.compatible
    assert [finding.undecided for finding in other.findings if finding.breaks] == [True]


def test_beside_a_reference_nothing_counts_before_2019_09() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    old = {"$schema": draft, "$ref": "#/definitions/a", "type": "integer", "definitions": {"a": {}}}
    new = {"$schema": draft, "type": "integer"}

    assert covers(SchemaDocument(new), SchemaDocument(old)) == "no"


def test_two_drafts_are_not_compared_by_guess() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [TEXT]}

    assert covers(SchemaDocument({"type": "array", "items": TEXT}), SchemaDocument(old)) != "yes"


def test_what_has_no_canonical_form_is_not_proved_by_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SchemaDocument, "canonical", lambda document, nodes: None)

    assert covers(SchemaDocument(INTEGER), SchemaDocument(TEXT)) == "unknown"


_WITHIN = {"properties": {"l": {"$ref": "#"}}}  # what the canonical forms leave open
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
NOT_COVERED = {
    "first items of their own": (
        {"$schema": _DRAFT_7, "items": [{}], **_WITHIN},
        {"$schema": _DRAFT_7, "items": [TEXT], **_WITHIN},
        [1],
    ),
    "no further items": ({"prefixItems": [{}], "unevaluatedItems": False, **_WITHIN}, {"maxItems": 0, **_WITHIN}, [1]),
    "no further members": ({"unevaluatedProperties": False, **_WITHIN}, {"maxProperties": 0, **_WITHIN}, {"l": 1}),
    "no further members than those of a reference": (
        {"$ref": "#/$defs/a", "unevaluatedProperties": False, "anyOf": [{"minItems": 0}], "$defs": {"a": _WITHIN}},
        {"maxProperties": 0, **_WITHIN},
        {"l": 1},
    ),
    "a name that ends a line": (
        {"patternProperties": {"^a$": TEXT}, "additionalProperties": INTEGER, **_WITHIN},
        {"properties": {**_WITHIN["properties"], "a\n": TEXT}},
        {"a\n": 1},
    ),
}


@pytest.mark.parametrize("case", NOT_COVERED)
def test_is_not_covered(case: str) -> None:
    old, new, payload = NOT_COVERED[case]

    assert takes(old)(payload)
    assert not takes(new)(payload)
    assert covers(SchemaDocument(new), SchemaDocument(old)) != "yes"


def test_a_promise_says_nothing_of_maps_patterns_and_what_is_named_elsewhere() -> None:
    read = SchemaDocument(objects(a=TEXT, b=INTEGER))
    for write in (
        {"type": "object"},
        {**objects(a=TEXT), "patternProperties": {"^b": TEXT}},
        {**objects(a=TEXT), "required": ["b"]},
        {**objects(a=TEXT), "additionalProperties": TEXT},
        {"allOf": [objects(a=TEXT), objects(b=TEXT)]},
    ):
        assert covers(read, assume_open_content(SchemaDocument(write), read)) != "yes"


def test_a_promise_holds_at_every_depth() -> None:
    old = objects(inner={"type": "array", "items": objects(value=INTEGER)})
    new = objects(inner={"type": "array", "items": objects(value=INTEGER, label=TEXT)})

    assert covers(SchemaDocument(new), SchemaDocument(old)) != "yes"
    assert covers(SchemaDocument(new), assume_open_content(SchemaDocument(old), SchemaDocument(new))) == "yes"
