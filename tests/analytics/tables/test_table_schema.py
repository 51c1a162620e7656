"""How the tables of payload types grow."""

import json
import re
from typing import Any

import pytest

t = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed")

from balog.analytics.tables import table_schema as evolution  # noqa: E402
from balog.analytics.tables.table_schema import FACILITY, RECOVERED, field_of, merge  # noqa: E402

NAMED = {
    "tinyint": t.ByteType(),
    "int": t.IntegerType(),
    "bigint": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "string": t.StringType(),
    "boolean": t.BooleanType(),
    "timestamp": t.TimestampType(),
}


def parsed(words: list[str], mark: bool) -> Any:
    """Give the type that the first words say, and take them away; Spark's own parser needs a session."""
    word = words.pop(0)
    if word == "decimal":
        _, digits, _, scale, _ = (words.pop(0) for _ in range(5))
        return t.DecimalType(int(digits), int(scale))
    if word == "array":
        words.pop(0)
        item = parsed(words, mark)
        words.pop(0)
        return t.ArrayType(item)
    if word != "struct":
        return NAMED[word]
    fields = []
    while words.pop(0) in "<,":
        name = words.pop(0)
        words.pop(0)
        field = name.split("__")[0]
        fields.append(
            t.StructField(name if not mark else field, parsed(words, mark), True, {"field": field} if mark else {})
        )
    return t.StructType(fields)


def struct(text: str, mark: bool = True) -> Any:
    """Give a schema, by default as ``merge`` takes what was seen: a field of several types comes again, as ``a__2``."""
    spelled = re.sub(r"(\w+) (?=[a-z])", r"\1:", text)
    return parsed(re.findall(r"\w+|[<>,:()]", f"struct<{spelled}>"), mark)


def payload(schema: Any) -> str:
    """Give the columns of the payload's fields in short."""
    fields = evolution.payload_fields(schema)
    return ", ".join(f"{column.name} {column.dataType.simpleString()}" for column in fields)


def grown(*seen: str) -> evolution.SchemaChange:
    """Give what the last of several batches changes."""
    change = evolution.SchemaChange(None, [])
    for text in seen:
        change = merge(change.schema, struct(text))
    return change


def test_a_new_table_begins_with_the_facilitys_columns() -> None:
    schema = merge(None, struct("a bigint")).schema
    assert schema.names == [*FACILITY.names, RECOVERED, "a"]


@pytest.mark.parametrize(
    ("batches", "columns", "lines"),
    [
        (["a bigint, b string", "c boolean, a bigint"], "a bigint, b string, c boolean", ["new column c boolean"]),
        (
            ["a struct<b: array<struct<c: bigint>>>", "a struct<b: array<struct<d: string>>, e: double>"],
            "a struct<b:array<struct<c:bigint,d:string>>,e:double>",
            ["new column a.b[].d string", "new column a.e double"],
        ),
        (
            ["a struct<b: bigint>", "a struct<b: string>"],
            "a struct<b:bigint,b_recovered:string>",
            ["conflict: a.b is bigint, now also string; the latter goes to a.b_recovered"],
        ),
        (
            ["a bigint", "a string", "a boolean"],
            "a bigint, a_recovered string",
            ["conflict: a is bigint and string, now also boolean; kept in payload_recovered"],
        ),
        (["a double", "a bigint"], "a double", []),
        (
            ["a bigint, a__2 string"],
            "a bigint, a_recovered string",
            ["new column a bigint", "conflict: a is bigint, now also string; the latter goes to a_recovered"],
        ),
        (
            ["a bigint", "a_recovered string", "a boolean"],
            "a bigint, a_recovered string, a_recovered_2 boolean",
            ["conflict: a is bigint, now also boolean; the latter goes to a_recovered_2"],
        ),
        (  # inside a struct, the facility's names are free
            ["a struct<id: bigint, timestamp: string>", "a struct<id: bigint>"],
            "a struct<id:bigint,timestamp:string>",
            [],
        ),
    ],
)
def test_a_table_grows_batch_by_batch_and_says_so(batches: list[str], columns: str, lines: list[str]) -> None:
    change = grown(*batches)
    assert (payload(change.schema), change.lines) == (columns, lines)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int", "bigint"),
        ("tinyint", "int"),
        ("float", "double"),
        ("decimal(10,2)", "decimal(38,2)"),
        ("array<int>", "array<bigint>"),
    ],
)
def test_what_old_files_can_be_read_as_widens_in_place(old: str, new: str) -> None:
    change = grown(f"a {old}", f"a {new}")
    assert payload(change.schema) == f"a {new}"
    assert "widens from" in change.lines[0]
    assert grown(f"a {new}", f"a {old}").lines == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bigint", "string"),
        ("string", "bigint"),
        ("bigint", "double"),
        ("string", "struct<x:bigint>"),
        ("struct<x:bigint>", "array<bigint>"),
        ("array<bigint>", "array<string>"),
        ("boolean", "bigint"),
        ("decimal(10,2)", "decimal(20,4)"),
        ("timestamp", "string"),
    ],
)
def test_anything_else_is_a_conflict_with_a_column_of_its_own(old: str, new: str) -> None:
    change = grown(f"a {old}", f"a {new}")
    assert payload(change.schema) == f"a {old}, a_recovered {new}"
    assert change.lines == [f"conflict: a is {old}, now also {new}; the latter goes to a_recovered"]
    assert grown(f"a {old}", f"a {new}", f"a {new}").lines == []


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ("id", "payload_id"),
        ("Timestamp", "payload_Timestamp"),
        ("date", "payload_date"),
        ("payload_recovered", "payload_payload_recovered"),
        ("http.status-code", "http_status_code"),
        ("größe", "größe"),
        ("", "_"),
        ("a" * 300, "a" * 120),
        ("a`;,\n{}()=", "a_________"),
    ],
)
def test_a_field_whose_name_no_column_can_have(field: str, column: str) -> None:
    seen = t.StructType([t.StructField(field, t.LongType(), True, {"field": field})])
    change = merge(None, seen)
    made = change.schema[len(FACILITY) + 1]
    assert (made.name, field_of(made)) == (column, field)
    assert merge(change.schema, seen) == (change.schema, [])


def test_names_that_differ_by_case_alone() -> None:
    seen = t.StructType([t.StructField(name, t.LongType(), True, {"field": name}) for name in ("User", "user", "USER")])
    schema = merge(None, seen).schema
    assert [(column.name, field_of(column)) for column in evolution.payload_fields(schema)] == [
        ("User", "User"),
        ("user_2", "user"),
        ("USER_3", "USER"),
    ]


def test_a_schema_survives_as_json() -> None:
    schema = grown("id bigint, a struct<b: bigint>", "a struct<b: string>").schema
    again = t.StructType.fromJson(json.loads(schema.json()))
    assert merge(again, struct("id bigint, a struct<b: string>")) == (schema, [])


def test_a_table_has_only_so_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolution, "MOST_COLUMNS", 3)
    change = grown("a bigint, b struct<c: bigint>", "b struct<d: bigint>, e struct<f: bigint>")
    assert payload(change.schema) == "a bigint, b struct<c:bigint,d:bigint>"
    assert change.lines[1:] == ["no room for e: 3 columns are the most; kept in payload_recovered"]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("a int, s struct<x: int, l: array<struct<y: float, z: string>>>, n string", False),
        ("a bigint, s struct<x: int, l: array<struct<y: float>>>", True),
        ("a int, s struct<x: int, l: array<struct<y: double>>>", True),
    ],
)
def test_a_wider_column_differs_from_a_new_one(after: str, expected: bool) -> None:
    before = struct("a int, s struct<x: int, l: array<struct<y: float>>>", mark=False)
    assert evolution.needs_widening(before, struct(after, mark=False)) is expected
