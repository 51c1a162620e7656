"""Changes in words, at the place of a payload where they are."""

from typing import Any

import pytest
from hypothesis import given, settings
from schema_pairs import documents

from balog.registry.comparing.difference_text import differences
from balog.registry.comparing.document import SchemaDocument, path_of

TEXT, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def told(old: Any, new: Any) -> list[tuple[str, str, str]]:
    """Give path, words, and ``-`` for what narrows, ``+`` for what widens."""
    return [
        (path_of(one.path), one.reason, "-" * one.narrows + "+" * one.widens)
        for one in differences(SchemaDocument(old), SchemaDocument(new))
    ]


CASES: list[tuple[Any, Any, tuple[str, str, str]]] = [
    (TEXT, INTEGER, ("$", "type string became integer", "-+")),
    (INTEGER, NUMBER, ("$", "type integer became number", "+")),
    (NUMBER, INTEGER, ("$", "type number became integer", "-")),
    (TEXT, {"type": ["string", "null"]}, ("$", "type string became null or string", "+")),
    (TEXT, {"anyOf": [TEXT, {"type": "null"}]}, ("$", "type string became null or string", "+")),
    ({}, TEXT, ("$", "type anything became string", "-")),
    ({"enum": ["EUR", "USD"]}, {"enum": ["USD"]}, ("$", "enum lost 'EUR'", "-")),
    ({"enum": [1]}, {"enum": [1, 2, None]}, ("$", "enum gained 2, null", "+")),
    (TEXT, {**TEXT, "enum": ["a"]}, ("$", "was limited to 'a'", "-")),
    ({**TEXT, "enum": ["a"]}, TEXT, ("$", "is no longer limited to 'a'", "+")),
    (INTEGER, {**INTEGER, "minimum": 1}, ("$", "minimum 1 was added", "-")),
    ({**INTEGER, "maximum": 1}, {**INTEGER, "maximum": 3}, ("$", "maximum was raised from 1 to 3", "+")),
    ({**TEXT, "minLength": 2}, {**TEXT, "minLength": 1}, ("$", "minLength was lowered from 2 to 1", "+")),
    (TEXT, {**TEXT, "format": "date"}, ("$", "format 'date' was added", "-")),
    ({**TEXT, "pattern": "a"}, {**TEXT, "pattern": "b"}, ("$", "pattern changed from 'a' to 'b'", "-+")),
    (objects(a=TEXT), objects(a=TEXT, b=TEXT), ("$.b", "optional property 'b' was added", "-")),
    (objects(a=TEXT, b=TEXT), objects(a=TEXT), ("$.b", "property 'b' was removed", "+")),
    (objects(a=TEXT), {**objects(a=TEXT), "required": ["a"]}, ("$.a", "property 'a' was made required", "-")),
    ({**objects(a=TEXT), "required": ["a"]}, objects(a=TEXT), ("$.a", "property 'a' was made optional", "+")),
    (
        objects(a=TEXT),
        {**objects(a=TEXT), "additionalProperties": False},
        ("$.*", "members that are not named may no longer be there", "-"),
    ),
    (
        objects(lines={"type": "array", "items": objects(sku=TEXT)}),
        objects(lines={"type": "array", "items": objects(sku=INTEGER)}),
        ("$.lines[*].sku", "type string became integer", "-+"),
    ),
    (
        {"type": "object", "additionalProperties": INTEGER},
        {"type": "object", "additionalProperties": TEXT},
        ("$.*", "type integer became string", "-+"),
    ),
    (
        {"anyOf": [TEXT, objects(k=TEXT)]},
        {"anyOf": [TEXT, objects(k=INTEGER)]},
        ("$.k", "type string became integer", "-+"),
    ),
    (
        {"anyOf": [objects(k=TEXT), {**objects(k=TEXT), "minProperties": 1}]},
        {"anyOf": [objects(k=TEXT), {**objects(k=TEXT), "minProperties": 2}]},
        ("$", "anyOf changed", "-+"),
    ),
]


@pytest.mark.parametrize(("old", "new", "said"), CASES, ids=[said[1] + str(n) for n, (_, _, said) in enumerate(CASES)])
def test_a_change_is_told(old: Any, new: Any, said: tuple[str, str, str]) -> None:
    assert told(old, new) == [said]


def test_a_type_within_itself_is_told_once() -> None:
    def tree(value: Any) -> dict[str, Any]:
        inner = {"type": "array", "items": {"$ref": "#/$defs/tree"}}
        return {"$defs": {"tree": objects(inner=inner, value=value)}, "$ref": "#/$defs/tree"}

    assert told(tree(INTEGER), tree(TEXT)) == [("$.value", "type integer became string", "-+")]


def test_long_lists_and_strange_names_stay_on_a_line() -> None:
    old = {**objects(**{"a\nb": {"enum": [*range(20)]}}), "required": ["a\nb"]}

    ((path, reason, _),) = told(old, {**objects(**{"a\nb": {"enum": [1]}}), "required": ["a\nb"]})

    assert reason == "enum lost 0, 2, 3, 4, 5 and 14 more"
    assert path.isprintable()


@settings(max_examples=50, deadline=None)
@given(documents())
def test_nothing_is_told_of_a_schema_and_itself(document: Any) -> None:
    assert told(document, document) == []
