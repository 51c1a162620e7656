"""Expressions over events and rows: names, three-valued logic, kinds, levels, times, functions, refusals, bounds."""

import itertools
import pickle
import subprocess
import sys
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.event import LEVELS, Event
from balog.filters import Expression

PAYLOAD = {
    "cls_type": "metric",
    "metric": "rows",
    "n": 5,
    "share": 0.5,
    "flag": True,
    "none": None,
    "list": [1, 2],
    "values": [{"name": "a"}],
    "select": "word",
    "a key": 1,
    "ISO": "2026-11-20T07:46:12Z",
}
CONTEXT = {"run_id": "r1", "k8s.pod": "p", "count": 3, "on": True, "nothing": None}


def make_event(payload: Any = None, **header: Any) -> Event:
    return Event.new("tap.sync", PAYLOAD if payload is None else payload, **{"context": CONTEXT, **header})


EVENT = make_event(level="WARNING", timestamp=datetime(2026, 11, 20, 7, 46, 12, 500, timezone.utc))


def value_of(text: str, subject: Any = EVENT) -> Any:
    names = "row" if isinstance(subject, dict) else "event"
    return Expression(text, names, gives="any").evaluate(subject)


# Names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("id", EVENT.header.id, id="id"),
        ("channel", "tap.sync"),
        ("timestamp", EVENT.header.timestamp),
        ("level", "WARNING"),
        ("LEVEL", "WARNING"),
        ("schema", "0.1.0"),
        ("composition", False),
        ("cls_type", "metric"),
        ("context.run_id", "r1"),
        ("context['k8s.pod']", "p"),
        ("context.count", "3"),
        ("context.on", "true"),
        ("context.nothing", None),
        ("context.missing", None),
        ("payload.n", 5),
        ("payload.values[0].name", "a"),
        ("payload.values[1].name", None),
        ("payload['values'][0]['name']", "a"),
        ('payload."a key"', 1),
        ("payload['a key']", 1),
        ("payload.select", "word"),
        ("payload.list[1]", 2),
        ("payload.from.end.where.case.null", None),
        ("payload.n.deeper", None),
        ("payload.list['0']", None),
        ("payload[0]", None),
        ("payload.N", None),
    ],
)
def test_a_name_gives_a_part_of_the_event(text: str, expected: Any) -> None:
    assert value_of(text) == expected


def test_a_path_may_have_more_parts_than_the_stack_has_frames() -> None:
    assert value_of("payload" + ".a" * 3000) is None


def test_an_event_of_facility_0_0_1_has_no_level() -> None:
    event = make_event()
    event.header.level = msgspec.UNSET
    assert value_of("level", event) is None
    assert value_of("level >= 'DEBUG'", event) is None


@pytest.mark.parametrize("text", ["a.b.c = 1", "a['b'].c = 1", '"a"."b"."c" = 1', "a.\"b\"['c'] = 1"])
def test_a_name_over_a_row_goes_into_nested_objects(text: str) -> None:
    assert Expression(text, "row").matches({"a": {"b": {"c": 1}}})
    assert not Expression(text, "row").matches({"a": [1]})


@pytest.mark.parametrize("text", ["list[0] = 1", '"array"[1] = 2', '"then" = 3', "a.array[0] = 4", "map['k'] = 5"])
def test_a_column_may_be_called_like_a_word_of_sql(text: str) -> None:
    row = {"list": [1], "array": [0, 2], "then": 3, "a": {"array": [4]}, "map": {"k": 5}}
    assert Expression(text, "row").matches(row)


def test_names_over_a_row_are_its_columns_also_those_that_an_event_has() -> None:
    assert value_of("level = 'x' AND \"a.b\" = 2 AND missing IS NULL", {"level": "x", "a.b": 2}) is True


@pytest.mark.parametrize("name", ["stream", "payloads", "header.id", "Payload2"])
def test_an_unknown_name_over_an_event_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(ConfigError, match=r"column 8: no name .*cls_type, context\.KEY, payload\.KEY"):
        Expression(f"1 = 1 +{name}")


# NULL

TRUTH: dict[str, dict[tuple[Any, Any], Any]] = {
    "AND": {(a, b): False if False in (a, b) else None if None in (a, b) else True
            for a, b in itertools.product([True, False, None], repeat=2)},
    "OR": {(a, b): True if True in (a, b) else None if None in (a, b) else False
           for a, b in itertools.product([True, False, None], repeat=2)},
}  # fmt: skip


@pytest.mark.parametrize(("op", "a", "b"), [(op, *pair) for op, table in TRUTH.items() for pair in table])
def test_and_and_or_follow_the_table_of_truth(op: str, a: Any, b: Any) -> None:
    expected = TRUTH[op][a, b]
    row = {"a": a, "b": b}
    assert value_of(f"a {op} b", row) is expected
    assert value_of(f"NOT (a {op} b)", row) is (None if expected is None else not expected)
    assert Expression(f"a {op} b", "row").matches(row) is (expected is True)
    assert Expression(f"a {op} b {op} a", "row").matches(row) is (expected is True)


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"])
@pytest.mark.parametrize("row", [{"a": None, "b": 1}, {"a": 1, "b": None}, {}])
def test_an_operator_with_a_null_gives_null(op: str, row: dict[str, Any]) -> None:
    assert value_of(f"a {op} b", row) is None
    assert value_of(f"a {op} NULL", {"a": 1}) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a IS NULL", True),
        ("x IS NOT NULL", True),
        ("(a = 1) IS TRUE", False),
        ("(a = 1) IS NOT FALSE", True),
        ("a IS DISTINCT FROM NULL", False),
        ("a IS NOT DISTINCT FROM b", True),
        ("a IS DISTINCT FROM x", True),
        ("x IS DISTINCT FROM 1", False),
        ("x IN (1, NULL)", True),
        ("x IN (2, NULL)", None),
        ("x NOT IN (2, NULL)", None),
        ("a IN (1)", None),
        ("x BETWEEN 2 AND a", False),
        ("x BETWEEN 1 AND a", None),
        ("CASE a WHEN NULL THEN 1 ELSE 2 END", 2),
        ("CASE WHEN a THEN 1 END", None),
        ("NULLIF(a, 1)", None),
        ("NULLIF(x, a)", 1),
        ("COALESCE(a, b, x)", 1),
    ],
)
def test_null_is_seen_where_sql_sees_it(text: str, expected: Any) -> None:
    assert value_of(text, {"x": 1, "a": None}) is expected


# Kinds


VALUES = ["1", 1, 1.5, True, None, [1], {"a": 1}, datetime(2026, 1, 1, tzinfo=timezone.utc)]


@pytest.mark.parametrize("op", ["=", "<>", "<", ">="])
@pytest.mark.parametrize(("a", "b"), [(a, b) for a, b in itertools.permutations(VALUES, 2) if {a.__class__, b.__class__} != {int, float}])  # fmt: skip # noqa: E501
def test_values_of_different_kinds_do_not_compare(op: str, a: Any, b: Any) -> None:
    assert value_of(f"a {op} b", {"a": a, "b": b}) is None


@pytest.mark.parametrize("value", [[1], {"a": 1}])
def test_arrays_and_objects_do_not_compare(value: Any) -> None:
    assert value_of("a = b", {"a": value, "b": value}) is None
    assert value_of("a IS DISTINCT FROM b", {"a": value, "b": value}) is True
    assert value_of("a IN ('x', 'y')", {"a": value}) is None
    assert value_of("a IN ('x')", {"a": value}) is None
    assert not Expression("a IN ('x', 'y')", "row").matches({"a": value})


@pytest.mark.parametrize("value", [[1], {"a": 1}, True, "1", 1.5, None])
@pytest.mark.parametrize("choices", ["NULL, 1", "1, NULL", "1, 2", "2, NULL, 'x'", "NULL, 'x'", "'x', 'y'"])
def test_in_is_an_or_of_equals(value: Any, choices: str) -> None:
    row = {"a": value}
    expected = value_of(" OR ".join(f"a = {choice}" for choice in choices.split(", ")), row)
    assert value_of(f"a IN ({choices})", row) is expected
    assert Expression(f"a IN ({choices})", "row").matches(row) is (expected is True)


@pytest.mark.parametrize(("text", "row"), [("a = 1", {"a": True}), ("a = '1'", {"a": 1}), ("a = 1", {"a": "1"})])
def test_a_constant_does_not_equal_a_value_of_another_kind(text: str, row: dict[str, Any]) -> None:
    assert value_of(text, row) is None
    assert not Expression(text, "row").matches(row)


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (Decimal("1.0"), 1), (2**70, 2**70)])
def test_numbers_compare_with_numbers(a: Any, b: Any) -> None:
    assert value_of("a = b AND a <= b AND NOT a < b", {"a": a, "b": b}) is True


@pytest.mark.parametrize(
    "text",
    [
        "channel = 5",
        "composition = 'true'",
        "NOT channel",
        "channel AND composition",
        "level + 1 = 2",
        "timestamp LIKE '2026%'",
        "timestamp = 5",
        "level = 30",
        "LOWER(5) = 'a'",
        "ABS(channel) = 1",
        "channel || 5 = 'a'",
        "channel",
        "1",
        "CASE WHEN channel THEN true END",
        "composition BETWEEN 1 AND 2",
        "CAST(timestamp AS STRING) = 'x'",
    ],
)
def test_what_is_plainly_of_the_wrong_kind_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"column \d+: .*(expects|compares|cannot be CAST)"):
        Expression(text)


# Levels and times


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize(("one", "other"), list(itertools.product(LEVELS, repeat=2)))
def test_levels_compare_by_severity(op: str, one: Any, other: str) -> None:
    expected = value_of(f"a {op} b", {"a": LEVELS[one], "b": LEVELS[other]})
    event = make_event({"severity": other.lower()}, level=one)
    assert value_of(f"level {op} '{other}'", event) is expected
    assert value_of(f"'{one}' {op} '{other}' AND level = level", event) is not None
    assert value_of(f"level {op} payload.severity", event) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("level IN ('info', 'warn')", True),
        ("level BETWEEN 'INFO' AND 'FATAL'", True),
        ("'ERROR' > level", True),
        ("level LIKE 'WARN%'", True),
        ("LOWER(level) = 'warning'", True),
        ("COALESCE(level, 'DEBUG') >= 'INFO'", True),
        ("level > payload.metric", None),
        ("level IS NOT DISTINCT FROM 'WARNING'", True),
        ("CASE level WHEN 'WARN' THEN 1 END = 1", True),
    ],
)
def test_a_level_is_a_severity_to_comparisons_and_a_name_to_the_rest(text: str, expected: Any) -> None:
    assert value_of(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("timestamp > '2026-11-20T07:46:12Z'", True),
        ("timestamp < '2026-11-20 07:46:13'", True),
        ("timestamp = '2026-11-20T07:46:12.0005Z'", True),
        ("timestamp = '2026-11-20T09:46:12.000500+02:00'", True),
        ("timestamp BETWEEN '2026-11-20' AND '2026-11-21'", True),
        ("TIMESTAMP '2026-11-20' < timestamp", True),
        ("timestamp > payload.ISO", True),
        ("timestamp > payload.metric", None),
        ("timestamp > payload.n", None),
        ("timestamp IN ('2026-11-20', '2026-11-20T07:46:12.0005Z')", True),
    ],
)
def test_a_time_compares_with_iso_8601(text: str, expected: Any) -> None:
    assert value_of(text) is expected


def test_a_text_in_a_row_is_a_time_beside_one() -> None:
    row = {"at": "2026-11-20T09:00:00+02:00", "began": datetime(2026, 11, 20, 7, 0)}
    assert value_of("at = TIMESTAMP '2026-11-20T07:00:00Z'", row) is True
    assert value_of("at = began", row) is True


@pytest.mark.parametrize("time", ["yesterday", "2026-13-01", "2026-11-20T25:00:00", "2026", "20261120", "2026-11-20T07:46", "2026-11-20T00:00:00+99:00"])  # fmt: skip # noqa: E501
def test_a_literal_that_is_no_time_is_refused(time: str) -> None:
    with pytest.raises(ConfigError, match="is no time; write it as"):
        Expression(f"timestamp > '{time}'")


# Arithmetic, functions, casts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("7 / 2", 3.5),
        ("-7 % 4", -3),
        ("7 % -4", 3),
        ("-7.5 % 2", -1.5),
        ("1 / 0", None),
        ("1 % 0", None),
        ("1.0 % 0", None),
        ("- - 3", 3),
        ("a + 1", None),
        ("'a' || 'b' || 'c'", "abc"),
        ("LOWER('ÄB')", "äb"),
        ("LENGTH('a😀')", 2),
        ("TRIM('  a\t ')", "a\t"),
        ("LTRIM(' a ')", "a "),
        ("RTRIM(' a ')", " a"),
        ("SUBSTR('abc', 2)", "bc"),
        ("SUBSTR('abc', 0, 2)", "ab"),
        ("SUBSTR('abc', -2, 1)", "b"),
        ("SUBSTR('abc', -5, 3)", "a"),
        ("SUBSTR('abc', 2, 0)", ""),
        ("SUBSTR('abc', 1, -1)", ""),
        ("SUBSTR('abc', 99999999999)", None),
        ("SUBSTRING('abc' FROM 2 FOR 1)", "b"),
        ("ROUND(2.5)", 3),
        ("ROUND(-2.5)", -3),
        ("ROUND(1.005, 2)", 1.01),
        ("ROUND(155, -1)", 160),
        ("ROUND(1e300, 2)", 1e300),
        ("ABS(-2)", 2),
        ("STARTSWITH('abc', 'ab')", True),
        ("ENDSWITH('abc', 'ab')", False),
        ("CONTAINS('abc', '')", True),
        ("LOWER(a)", None),
        ("LOWER(NULL)", None),
        ("CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END", "b"),
        ("CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN 'b' END", "b"),
        ("1 /* one */ + -- and\n 2", 3),
        ("'it''s \\n'", "it's \\n"),
    ],
)
def test_a_value_is_computed_as_sql_does(text: str, expected: Any) -> None:
    value = value_of(text, {"a": True})
    assert value == expected
    assert (value is None) == (expected is None)


@pytest.mark.parametrize(
    ("value", "string", "double", "int_", "bigint", "boolean"),
    [
        ("abc", "abc", None, None, None, None),
        (" 12 ", " 12 ", 12.0, 12, 12, None),
        ("1.5", "1.5", 1.5, None, None, None),
        ("1e3", "1e3", 1000.0, None, None, None),
        ("nan", "nan", None, None, None, None),
        ("TRUE", "TRUE", None, None, None, True),
        ("3000000000", "3000000000", 3e9, None, 3000000000, None),
        (1, "1", 1.0, 1, 1, True),
        (1.0, "1", 1.0, 1, 1, True),
        (-1.75, "-1.75", -1.75, -1, -1, True),
        (0, "0", 0.0, 0, 0, False),
        (2**63, str(2**63), float(2**63), None, None, True),
        (True, "true", 1.0, 1, 1, True),
        ([1], None, None, None, None, None),
        ({}, None, None, None, None, None),
        (None, None, None, None, None, None),
        ("9" * 5000, "9" * 5000, float("inf"), None, None, None),
        (float("inf"), "inf", float("inf"), None, None, True),
    ],
)
def test_a_cast_gives_null_where_it_cannot(
    value: Any, string: Any, double: Any, int_: Any, bigint: Any, boolean: Any
) -> None:
    expected = {"STRING": string, "DOUBLE": double, "INT": int_, "BIGINT": bigint, "BOOLEAN": boolean}
    for cast in ("CAST(a AS {})", "TRY_CAST(a AS {})", "a::{}"):
        assert {to: value_of(cast.format(to), {"a": value}) for to in expected} == expected


# What is refused


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "an empty expression"),
        ("  -- nothing", "an empty expression"),
        ("composition =", "something is missing at '='"),
        ("(composition", "column 2: Expecting )"),
        ("composition)", "column 12: ')' is not expected here"),
        ("composition composition", "column 13: 'composition' is not expected here"),
        ("'abc", "cannot be read as an expression"),
        ("SELECT 1", "column 1: SELECT"),
        ("true; DROP TABLE x", "column 5: a ; ends a statement"),
        ("true;", "column 5: a ; ends a statement"),
        ("payload.a = (SELECT 1)", "column 14: SELECT"),
        ("EXISTS(SELECT 1)", "SELECT"),
        ("SUM(payload.a) > 1", "SUM is an aggregate"),
        ("COUNT(*) > 1", "COUNT is an aggregate"),
        ("ROW_NUMBER() OVER () = 1", "column 14: OVER makes a window"),
        ("payload.a = ?", "column 13: ? is a placeholder"),
        ("payload.a = :x", "placeholder"),
        ("payload.a = @x", "placeholder"),
        ("FILTER(payload.a, x -> x > 1)", "->"),
        ("payload.a = {{ x }}", "column 13"),
        ("foo(1)", "no function foo; there are ABS"),
        ("CONCAT('a', 'b') = 'ab'", "no function CONCAT"),
        ("LOWER('a', 'b') = 'a'", "greater than the maximum number"),
        ("STARTSWITH(channel)", "something is missing"),
        ("SUBSTR(channel) = 'a'", "SUBSTR expects"),
        ("TRIM(channel, 'x') = 'a'", "TRIM has no expression"),
        ("payload.lower(1) = 1", "a part of a name is a word"),
        ("then = 1", "a name that is a word of SQL goes in double quotes"),
        ("payload.a\0 = 1", "column 10: a NUL"),
        ("INTERVAL '1' DAY = payload.a", "INTERVAL is not in the language"),
        ("DATE '2026-01-01' = payload.a", "CAST knows STRING"),
        ("CAST(payload.a AS DECIMAL(3, 2)) = 1", "CAST knows STRING"),
        ("payload.a SIMILAR TO 'x'", "SIMILARTO is not in the language"),
        ("payload.a LIKE ANY ('x')", "written out"),
        ("payload.a LIKE payload.b", "written out"),
        ("payload.a RLIKE payload.b", "written out"),
        ("payload.a RLIKE '('", "regular expression"),
        ("payload.a LIKE 'x!' ESCAPE '!'", "expects %, _ or itself"),
        ("payload.a IN ()", "something in it"),
        ("payload.a IS 5", "IS expects"),
        ("payload.* = 1", "a part of a name is a word"),
        ("* = 1", "STAR is not in the language"),
        ("payload.a[-1] = 1", "one index from 0"),
        ("payload.a[1.5] = 1", "whole number from 0"),
        ("payload.a[0, 1] = 1", "one index from 0"),
        ("payload.2nd = 1", "expected"),
        ("context.a.b = 'x'", "a context holds text by key"),
        ("channel.a = 'x'", "channel has no parts"),
        ("level = 'LOUD'", "no level 'LOUD'; there are DEBUG, INFO"),
        ("payload.a = 1e999", "no number that fits"),
        *(("payload.a = " + "9" * digits, "no number that fits") for digits in (400, 5000)),
        ("ROUND(payload.a, payload.b) = 1", "ROUND expects its digits written out"),
        ("TRIM(BOTH 'x' FROM channel) = 'a'", "TRIM has no"),
        ("payload.a = '\ud800'", "column 14: a lone surrogate"),
        ("channel = 'a'\n AND nope", "line 2, column 6: no name 'nope'"),
    ],
)
def test_a_refusal_is_one_line_that_says_what_and_where(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Expression(text)
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500


WORDS = (  # noqa: SIM905
    "level payload . a [ 0 ] ( ) = < > 'x' 1 AND OR NOT IN LIKE BETWEEN IS NULL CASE WHEN THEN END , -- /* */ \" ; : ? "
    "@ -> || CAST AS INT SELECT FROM {{ }} \\ INTERVAL ESCAPE COALESCE timestamp % - ' \n list array é"
).split(" ")


def try_text(text: str, subject: Any) -> str:
    """Give what refuses a text, or run it and give nothing."""
    try:
        expression = Expression(text, "row" if isinstance(subject, dict) else "event", gives="any")
    except ConfigError as refusal:
        return str(refusal)
    expression.evaluate(subject)
    assert expression.matches(subject) in (True, False)
    return ""


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS)))
def test_any_words_are_an_expression_or_one_line_of_refusal(words: list[str]) -> None:
    assert "\n" not in try_text(" ".join(words), EVENT)


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_one_line_of_refusal(text: str) -> None:
    assert "\n" not in try_text(text, {})


# Bounds


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "true" + ")" * 5000,
        "NOT " * 4000 + "true",
        "- " * 5000 + "1 = 1",
        "CASE WHEN " * 1000 + "true",
        "a = 1" + " = true" * 1000,
        "x + " * 4000 + "1 = 1",
        "LOWER(" * 1500 + "'a'" + ")" * 1500,
        "a IN (" * 1500 + "1" + ")" * 1500,
        "a[b" * 2000,
        "a IS DISTINCT FROM " * 800 + "1",
        "interval " * 1500 + "'1' day = 1",
        "a AT TIME ZONE " * 1000 + "'x'",
        "ARRAY<" * 2000,
        "x" * (16 * 1024 + 1),
        "'" + "é" * 8 * 1024 + "' = 'a'",
    ],
)
def test_a_text_too_deep_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Expression(text, "row")
    assert "\n" not in str(refusal.value)


def test_a_chain_of_or_may_be_as_long_as_the_text() -> None:
    row = {"a": 1199}
    text = " OR ".join(f"a = {i}" for i in range(1200))
    assert Expression(text, "row").matches(row)
    assert not Expression(text.replace("OR", "AND"), "row").matches(row)


def test_what_stands_on_several_sides_is_computed_once() -> None:
    """Each of these doubles at every level where it is computed twice: 2**30 steps would not end."""

    class Row(dict):  # type: ignore[type-arg]
        looks = 0

        def get(self, key: Any, default: Any = None) -> Any:
            self.looks += 1
            return super().get(key, default)

    for inner in (
        "({}) IS DISTINCT FROM b",
        "({}) BETWEEN b AND c",
        "({}) IN (b, c)",
        "NULLIF({}, b)",
        "COALESCE({}, b)",
        "CASE {} WHEN b THEN a WHEN c THEN a END",
    ):
        text = "a"
        for _ in range(30):
            text = inner.format(text)
        row = Row(a=None)
        Expression(text, "row", gives="any").evaluate(row)
        assert row.looks <= 130


# The object


def test_a_payload_is_decoded_only_when_the_expression_mentions_it() -> None:
    event = make_event()
    assert Expression("cls_type = 'metric' AND context.run_id = 'r1' AND level = 'INFO'").matches(event)
    assert "_view" not in event.__dict__
    assert Expression("payload.n = 5").matches(event)
    assert "_view" in event.__dict__


def test_a_payload_that_cannot_be_read_has_nothing_in_it() -> None:
    event = make_event(msgspec.Raw(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"))
    assert value_of("payload.a", event) is None
    assert value_of("payload.a.b[0] IS NULL", event) is True


def test_expressions_are_equal_hashed_and_pickled_by_their_text() -> None:
    one, other = Expression("level = 'ERROR'"), Expression("level = 'ERROR'")
    assert one == other
    assert len({one, other}) == 1
    assert one != Expression("level = 'ERROR'", "row")
    assert one != "level = 'ERROR'"
    copy = pickle.loads(pickle.dumps(Expression("a + 1", "row", gives="any")))
    assert copy.evaluate({"a": 1}) == 2
    assert repr(one) == """Expression("level = 'ERROR'")"""
    assert one.text == "level = 'ERROR'"


def test_an_expression_does_not_change() -> None:
    expression = Expression("composition")
    for change in (lambda: setattr(expression, "_text", "x"), lambda: delattr(expression, "_text")):
        with pytest.raises(AttributeError, match="does not change"):
            change()


def test_sqlglot_is_imported_by_the_first_expression_only() -> None:
    program = (
        "import sys, balog, balog.filters; assert 'sqlglot' not in sys.modules; "
        "balog.filters.Expression('composition'); assert 'sqlglot' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("payload.a = 'x'", {"x"}),
        ("'x' = payload.a", {"x"}),
        ("payload.n > 1 AND (payload.a = 'x' AND level = 'ERROR')", {"x"}),
        ("payload.a IN ('x', 'y') AND payload.a = 'x'", {"x", "y"}),
        ("cls_type = 'x'", {"x"}),
        ("payload.a = 'x' OR payload.n = 1", None),
        ("NOT payload.a = 'x'", None),
        ("payload.a <> 'x'", None),
        ("payload.a NOT IN ('x')", None),
        ("payload.a IN ('x', 1)", None),
        ("payload.a = 1", None),
        ("payload.a = payload.b", None),
        ("LOWER(payload.a) = 'x'", None),
        ("level = 'ERROR'", None),
        ("timestamp = '2026-11-20'", None),
        ("(payload.a = 'x') IS NOT TRUE", None),
        ("payload.a IS NULL", None),
    ],
)
def test_what_a_condition_can_t_be_true_without(text: str, texts: set[str] | None) -> None:
    need = Expression(text).need
    assert (None if need is None else need.texts) == texts
