"""The page on protobuf: its tables are what is done."""

import pytest

from balog.registry.comparing.wire import compare_wire
from balog.registry.protobuf import compile_proto
from balog.registry.schema import Schema

REST = " message B { int32 x = 1; } enum E { X = 0; Y = 1; }"


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [
        ("int32 a = 1;", "int32 a = 1; int32 b = 2;", True, True),
        ("int32 a = 1; int32 b = 2;", "int32 a = 1; reserved 2;", True, True),
        ("int32 a = 1; int32 b = 2;", "int32 a = 1;", False, False),
        ("int32 a = 1; reserved 2;", "int32 a = 1; int32 b = 2;", False, False),
        ("int32 a = 1; reserved 2;", "int32 a = 1;", False, False),
        ("int32 a = 1;", "int64 a = 1;", True, False),
        ("uint32 a = 1;", "int64 a = 1;", True, False),
        ("sint32 a = 1;", "sint64 a = 1;", True, False),
        ("int32 a = 1;", "uint32 a = 1;", False, False),
        ("sint32 a = 1;", "int32 a = 1;", False, False),
        ("fixed32 a = 1;", "sfixed32 a = 1;", False, False),
        ("float a = 1;", "double a = 1;", False, False),
        ("bool a = 1;", "int32 a = 1;", True, False),
        ("E a = 1;", "int32 a = 1;", True, False),
        ("string a = 1;", "bytes a = 1;", True, False),
        ("B a = 1;", "bytes a = 1;", True, False),
        ("int32 a = 1;", "repeated int32 a = 1;", True, False),
        ("int32 a = 1; int32 b = 2;", "oneof x { int32 a = 1; int32 b = 2; }", False, True),
        ("int32 a = 1;", "oneof x { int32 a = 1; }", True, True),
        ("int32 a = 1;", "int32 b = 1;", False, False),
        ("int32 a = 1;", 'int32 b = 1 [json_name = "a"];', True, True),
    ],
)
def test_its_table_of_changes_is_what_is_judged(old: str, new: str, backward: bool, forward: bool) -> None:
    one, two = (
        Schema("a", "1.0.0", "protobuf", f'syntax = "proto3"; message A {{ {text} }}{REST}'.encode(), "A")
        for text in (old, new)
    )
    judged = [not any(found.breaks for found in compare_wire(one, two, mode)) for mode in ("backward", "forward")]
    assert judged == [backward, forward]


def test_its_table_of_columns_is_what_is_laid_out() -> None:
    types = pytest.importorskip("balog.analytics.reading.registry_types", reason="pyspark is not installed")
    kinds = {
        "int32": "bigint", "fixed32": "bigint", "int64": "bigint", "uint64": "bigint", "float": "double",
        "double": "double", "string": "string", "bool": "boolean", "bytes": "string", "E": "string",
        "repeated int32": "array<bigint>",
        "map<string, double>": "map<string,double>", "B": "struct<x:bigint>", "A": "string",
        "google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "string",
        "google.protobuf.FieldMask": "string", "google.protobuf.Int64Value": "bigint",
        "google.protobuf.StringValue": "string", "google.protobuf.Struct": "map<string,string>",
        "google.protobuf.Value": "string", "google.protobuf.ListValue": "array<string>",
    }  # fmt: skip
    imports = "".join(
        f'import "google/protobuf/{name}.proto"; '
        for name in ("timestamp", "duration", "field_mask", "wrappers", "struct")
    )
    fields = " ".join(f"{kind} f{number} = {number};" for number, kind in enumerate(kinds, 1))
    source = f'syntax = "proto3"; {imports} message A {{ {fields} }}{REST}'
    columns = types.spark_type(compile_proto(source.encode(), "A").json_schema())
    found = {field.name: field.dataType.simpleString() for field in columns}
    assert [found[f"f{number}"] for number in range(1, len(kinds) + 1)] == list(kinds.values())
