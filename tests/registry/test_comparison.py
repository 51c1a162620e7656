"""Verdicts: modes, the least version, histories, what tables become."""

from typing import Any

import pytest
from schema_pairs import json_schema

from balog.registry import InvalidSchemaError, Schema
from balog.registry.comparing import (
    CompatibilityReport,
    Mode,
    compare,
    compare_history,
    compare_in_child,
    least_version,
)

TEXT, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def objects(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required]}


def judge(old: Any, new: Any, mode: Mode = "backward", open: bool = True) -> CompatibilityReport:
    return compare(json_schema(old), json_schema(new, "1.1.0"), mode, open=open)


def broken(verdict: CompatibilityReport) -> list[tuple[str, str]]:
    return [(one.path, one.reason) for one in verdict.findings if one.breaks]


@pytest.mark.parametrize(
    ("old", "new", "bump"),
    [
        (objects(a=TEXT), objects(a=TEXT), "none"),
        (objects(a=TEXT), {**objects(a=TEXT), "description": "words"}, "patch"),
        (objects(a=TEXT), {"$defs": {"a": objects(a=TEXT)}, "$ref": "#/$defs/a"}, "patch"),
        (objects(a=TEXT), objects(a=TEXT, b=INTEGER), "minor"),
        (objects("a", a=TEXT), objects(a=TEXT), "minor"),
        (objects(a=TEXT), objects("a", a=TEXT), "major"),
        (objects(a=TEXT), objects(a=INTEGER), "major"),
    ],
)
def test_the_least_step_of_a_change(old: Any, new: Any, bump: str) -> None:
    assert judge(old, new).bump == bump


def test_an_optional_property_may_be_added_to_an_open_model_unless_it_is_by_the_letter() -> None:
    old, new = objects(a=TEXT), objects(a=TEXT, b=INTEGER)

    assert judge(old, new, "full").compatible
    (finding,) = (one for one in judge(old, new, open=False).findings if one.breaks)
    assert (finding.path, finding.undecided) == ("$.b", False)


def test_each_mode_asks_its_own_readers() -> None:
    narrow, wide = objects("a", a=INTEGER), objects("a", a=NUMBER)

    assert judge(narrow, wide, "backward").compatible
    assert not judge(narrow, wide, "forward").compatible
    assert judge(wide, narrow, "forward").compatible
    assert not judge(wide, narrow, "backward").compatible
    assert not judge(narrow, wide, "full").compatible


def test_each_break_is_named_with_its_path_and_rule() -> None:
    verdict = judge(objects("id", id=TEXT, a=TEXT, b=INTEGER), objects("id", "b", id=TEXT, a=INTEGER, b=INTEGER))

    assert [(one.path, one.reason, one.undecided) for one in verdict.findings if one.breaks] == [
        ("$.b", "property 'b' was made required", False),
        ("$.a", "type string became integer", False),
    ]


@pytest.mark.parametrize(
    "word",
    ["minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties"],
)
def test_a_count_may_be_written_with_a_point(word: str) -> None:
    beside = {"contains": {}} if "Contains" in word else {}
    old, new = {"a": {word: 2.0, **beside}}, {"a": {word: 3.0 if word.startswith("min") else 1.0, **beside}}

    same = judge(objects(**old), objects(a={word: 2, **beside}))
    verdict = judge(objects(**old), objects(**new))

    assert same.compatible
    assert not verdict.compatible


def test_alternatives_of_the_whole_within_each_other_are_refused() -> None:
    whole = {"$ref": "#"}
    old = {"minimum": 0.3, "properties": {"a": {"type": "integer"}}, "oneOf": [{"maximum": 1, **whole}, whole, whole]}

    with pytest.raises(InvalidSchemaError, match="leads back to where it is"):
        compare(json_schema(old), json_schema({**old, "properties": {"a": {"type": "string"}}}, "1.1.0"))


def test_what_cannot_be_decided_breaks_and_says_so() -> None:
    old = objects(a={"type": "string", "pattern": "^(a|b)*c$"})
    new = objects(a={"type": "string", "pattern": "^(b|a)*c$"})

    (finding,) = (one for one in judge(old, new).findings if one.breaks)

    assert finding.undecided


def test_a_version_that_a_schema_names_is_no_change() -> None:
    old, new = ({**objects(version={"const": version})} for version in ("1.0.0", "1.1.0"))

    assert judge(old, new, "full").compatible


def versions(**documents: Any) -> list[Schema]:
    return [json_schema(document, name.strip("v").replace("_", ".")) for name, document in documents.items()]


def test_a_transitive_mode_asks_the_whole_history_of_the_major() -> None:
    history = versions(v1_0_0=objects(a=TEXT), v1_1_0=objects(b=TEXT), v0_9_0=objects(a={"type": "null"}))
    new = json_schema(objects(b=TEXT, a=INTEGER), "1.2.0")

    assert compare_history(history, new, "backward").compatible
    assert broken(compare_history(history, new, "backward_transitive")) == [
        ("$.a", "type string became integer (since 1.0.0)")
    ]


def test_a_version_follows_the_latest_one_below_it() -> None:
    history = versions(v1_0_0=objects(a=TEXT), v2_0_0=objects(a=INTEGER))

    assert compare_history(history, json_schema(objects(a=TEXT, b=TEXT), "1.1.0")).compatible
    assert not compare_history(history, json_schema(objects(a=TEXT, b=TEXT), "2.1.0")).compatible
    assert compare_history([], json_schema(objects(a=TEXT))) == CompatibilityReport(compatible=True, bump="none")


@pytest.mark.parametrize(
    ("last", "bump", "least"),
    [
        ("1.2.3", "none", "1.2.3"),
        ("1.2.3", "patch", "1.2.4"),
        ("1.2.3", "minor", "1.3.0"),
        ("1.2.3", "major", "2.0.0"),
        ("0.2.3", "major", "0.3.0"),
        ("0.2.3", "minor", "0.2.4"),
        ("0.2.3", "patch", "0.2.4"),
        ("2.0.0-rc.1", "major", "2.0.0-rc.1.0"),
        ("2.1.0-rc.1", "minor", "2.1.0-rc.1.0"),
        ("2.1.0-rc.1", "major", "3.0.0"),
    ],
)
def test_the_least_version(last: str, bump: Any, least: str) -> None:
    history = [json_schema({}, last), json_schema({}, "0.0.1")]

    assert least_version(history, CompatibilityReport(compatible=bump != "major", bump=bump)) == least


def test_two_forms_do_not_follow_each_other() -> None:
    proto = Schema("order", "1.1.0", "protobuf", b'syntax = "proto3"; message Order { string a = 1; }')

    found = [one for one in compare(json_schema(objects(a=TEXT)), proto).findings if one.breaks]

    assert ("wire", "the form json became protobuf") in [(one.layer, one.reason) for one in found]


def test_in_a_child_the_report_is_the_same() -> None:
    history, new = [json_schema(objects(a=TEXT))], json_schema(objects(a={"type": "integer"}), "1.1.0")

    assert compare_in_child(history, new, "full") == compare_history(history, new, "full")


def test_a_child_compares_two_schemas_whatever_their_versions_are() -> None:
    old, new = json_schema(objects(a=TEXT), "2.0.0"), json_schema(objects(a=INTEGER, b=TEXT), "1.0.0")

    assert compare_in_child([old], new, "full", is_pair=True) == compare(old, new, "full")


def test_a_comparison_without_end_is_undecided() -> None:
    """The canonical form of a schema can be larger than any memory."""
    parts = [{"oneOf": [objects(**{f"p{n}": TEXT}), objects(**{f"q{n}": TEXT})]} for n in range(30)]
    new = json_schema({"allOf": parts, "required": ["z"]}, "1.1.0")

    verdict = compare_in_child([json_schema({"allOf": parts})], new, "backward", seconds=1)

    assert not verdict.compatible
    assert [(found.path, found.undecided) for found in verdict.findings] == [("$", True)]
