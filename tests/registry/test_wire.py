"""Protobuf's wire: which changes of a message its readers get wrong."""

from __future__ import annotations

import pytest

from balog.registry.comparing.verdict import CompatibilityFinding, Mode
from balog.registry.comparing.wire import compare_wire
from balog.registry.schema import Schema

HEADS = {2: 'syntax = "proto2"; ', 3: 'syntax = "proto3"; import "buf/validate/validate.proto"; '}


def compared(old: str, new: str, mode: Mode = "backward", syntax: int = 3) -> list[CompatibilityFinding]:
    versions = [
        Schema("a", version, "protobuf", (HEADS[syntax] + text).encode(), "A")
        for version, text in (("1.0.0", old), ("1.1.0", new))
    ]
    return compare_wire(*versions, mode)


def breaks(old: str, new: str, mode: Mode = "backward", syntax: int = 3) -> list[CompatibilityFinding]:
    return [finding for finding in compared(old, new, mode, syntax) if finding.breaks]


REST = (
    " message B { int32 x = 1; } message C { int64 x = 1; string y = 2; } message D { bytes x = 1; }"
    " enum E { X = 0; Y = 1; }"
)
"""Other types of fields are in ``test_wire_types``, each as each."""


@pytest.mark.parametrize(("old", "new"), [("int32", "optional int32"), ("E", "int64"), ("B", "C")])
def test_a_type_that_holds_all_of_the_other_may_follow(old: str, new: str) -> None:
    assert breaks(f"message A {{ {old} a = 1; }}{REST}", f"message A {{ {new} a = 1; }}{REST}") == []


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [("int64", "int32", "A.a"), ("map<string, int32>", "map<string, sint32>", "A.a"), ("B", "D", "D.x")],
)
def test_a_type_that_reads_something_else_breaks(old: str, new: str, path: str) -> None:
    (found,) = breaks(f"message A {{ {old} a = 1; }}{REST}", f"message A {{ {new} a = 1; }}{REST}")
    assert (found.layer, found.path) == ("wire", path)


def test_forward_asks_the_other_way_round() -> None:
    narrow, wide = "message A { int32 a = 1; }", "message A { int64 a = 1; }"
    assert breaks(narrow, wide, "backward") == []
    assert [finding.reason for finding in breaks(narrow, wide, "forward")] == [
        "for readers of the old version, int64 is read as int32, which has not all of its values"
    ]
    assert len(breaks(narrow, wide, "full")) == 1
    assert len(breaks(wide, narrow, "full_transitive")) == 1


def test_a_change_deep_inside_is_shown_in_its_place() -> None:
    old = (
        "message A { repeated B bs = 1; } message B { map<int32, C> cs = 1; } message C { sint32 n = 1; A again = 2; }"
    )
    (found,) = breaks(old, old.replace("sint32", "int32"))
    assert found.path == "C.n"


@pytest.mark.parametrize("mode", ["backward", "forward", "full"])
def test_a_new_field_breaks_nobody(mode: Mode) -> None:
    assert compared("message A { int32 a = 1; }", "message A { int32 a = 1; string b = 2; }", mode) == []


def test_a_deleted_field_leaves_its_number_reserved() -> None:
    old = "message A { int32 a = 1; int32 b = 2; }"
    assert [finding.reason for finding in breaks(old, "message A { int32 a = 1; }")] == [
        "was deleted and its number is not reserved; say: reserved 2;"
    ]
    assert breaks(old, "message A { int32 a = 1; reserved 2; }") == []
    assert compared(old, 'message A { int32 a = 1; reserved 2; reserved "b"; }') == []


def test_a_reserved_number_does_not_come_back() -> None:
    old = "message A { int32 a = 1; reserved 2 to 9; }"
    assert (
        "which was reserved"
        in breaks(old, "message A { int32 a = 1; int32 b = 5; reserved 2 to 4, 6 to 9; }")[0].reason
    )
    assert [finding.reason for finding in breaks(old, "message A { int32 a = 1; reserved 2 to 4, 7 to 9; }")] == [
        "the number 5 is not reserved any more"
    ]
    assert breaks(old, "message A { int32 a = 1; reserved 2 to 5, 6 to 20; }") == []


def test_another_name_is_another_field_in_json_alone() -> None:
    (found,) = breaks("message A { int32 my_a = 1; }", "message A { int32 my_b = 1; }")
    assert (found.layer, found.reason) == ("json", "is called myB in JSON, and was called myA")
    assert breaks("message A { int32 my_a = 1; }", 'message A { int32 my_b = 1 [json_name = "myA"]; }') == []


APART, TOGETHER = "message A { int32 a = 1; int32 b = 2; }", "message A { oneof x { int32 a = 1; int32 b = 2; } }"
OPTIONAL, REQUIRED = "message A { optional int32 a = 1; }", "message A { required int32 a = 1; }"
GROUP = "message A { optional group B = 1 { optional int32 c = 2; } }"


@pytest.mark.parametrize(
    ("old", "new", "mode", "syntax", "paths"),
    [
        (APART, TOGETHER, "backward", 3, ["A.x"]),
        (TOGETHER, APART, "backward", 3, []),
        (TOGETHER, APART, "forward", 3, ["A.x"]),
        ("message A { int32 a = 1; }", "message A { oneof x { int32 a = 1; int32 c = 3; } }", "backward", 3, []),
        (OPTIONAL, REQUIRED, "backward", 2, ["A.a"]),
        (REQUIRED, OPTIONAL, "backward", 2, []),
        (OPTIONAL.replace(";", " [default = 1];"), OPTIONAL.replace(";", " [default = 2];"), "backward", 2, ["A.a"]),
        (GROUP, "message A { optional B b = 1; message B { optional int32 c = 2; } }", "backward", 2, ["A.b"]),
    ],
)
def test_which_changes_of_a_field_break(old: str, new: str, mode: Mode, syntax: int, paths: list[str]) -> None:
    assert [finding.path for finding in breaks(old, new, mode, syntax)] == paths


def test_a_map_is_no_list_of_its_entries() -> None:
    as_map = "message A { map<string, int32> a = 1; }"
    as_list = "message A { repeated E a = 1; } message E { string key = 1; int32 value = 2; }"
    assert "a map is read as a list" in breaks(as_map, as_list)[0].reason
    assert "a list is read as a map" in breaks(as_list, as_map)[0].reason


E = "message A { E e = 1; } enum E { X = 0; "
E2 = "message A { optional E e = 1; } enum E { X = 0; "


@pytest.mark.parametrize(
    ("old", "new", "mode", "syntax", "count"),
    [
        (E + "}", E + "Y = 1; }", "backward", 3, 0),  # a new value
        (E2 + "}", E2 + "Y = 1; }", "forward", 2, 1),  # which an old reader of a closed enum loses
        (E + "Y = 1; Z = 2; }", E + "Y = 2; Z = 1; }", "backward", 3, 1),  # another number
        (E + "Y = 1; }", E + "}", "backward", 3, 1),  # a deleted value
        (E + "Y = 1; }", E + "reserved 1; }", "backward", 3, 0),
        (E + "reserved 1; }", E + "Y = 1; }", "backward", 3, 1),  # a reserved number comes back
    ],
)
def test_which_changes_of_an_enum_break(old: str, new: str, mode: Mode, syntax: int, count: int) -> None:
    assert [finding.layer for finding in breaks(old, new, mode, syntax)] == ["wire"] * count


def test_a_rule_that_nobody_can_compare_counts_as_a_break() -> None:
    old = "message A { string a = 1; }"
    new = 'message A { string a = 1 [(buf.validate.field).cel = {id: "q" expression: "this.size() > 1"}]; }'
    (found,) = breaks(old, new)
    assert (found.layer, found.path, found.undecided) == ("json", "A.a", True)
    assert breaks(new, old) == []
    assert breaks(new, new, "full") == []


@pytest.mark.parametrize(
    ("rules", "is_broken"),
    [("string.min_len = 1", True), ("string.max_len = 9", False), ("required = true", True)],
)
def test_the_rule_of_a_new_field_breaks_if_messages_without_it_break_it(rules: str, is_broken: bool) -> None:
    old = "message A { B b = 1; } message B { int32 x = 1; }"
    new = old.replace("x = 1;", f"x = 1; string y = 2 [(buf.validate.field).{rules}];")
    assert [finding.path for finding in breaks(old, new)] == (["B.y"] if is_broken else [])


def test_a_tighter_rule_breaks_and_a_removed_one_does_not() -> None:
    loose, tight = (
        f"message A {{ int32 a = 1 [(buf.validate.field).int32 = {{gt: 0, lt: {most}}}]; }}" for most in (9, 5)
    )
    (found,) = breaks(loose, tight)
    assert (found.path, found.undecided) == ("A.a", True)
    assert "int32.lt: 5" in found.reason
    assert breaks(loose, "message A { int32 a = 1; }") == []


def test_the_same_file_has_no_findings() -> None:
    text = (
        "message A { int32 a = 1; oneof x { A b = 2; E c = 3; } map<string, A> d = 4; reserved 9; } enum E { X = 0; }"
    )
    assert compared(text, text, "full") == []
