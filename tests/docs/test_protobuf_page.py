"""The page on protobuf: its blocks run as they are, its bounds are the code's, its tables are what is done."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from balog.registry.comparing.wire import compare_wire
from balog.registry.protobuf import compile_proto, compiler, descriptors, message
from balog.registry.schema import Schema
from tests.documentation import docs_page

PAGE = docs_page("protobuf.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_blocks_run_and_say_what_the_page_says(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "BALOG_REGISTRY"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    said = ""
    for language, name, text in BLOCKS:
        if name:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        elif language == "sh":
            done = subprocess.run(
                ["sh", "-e", "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
            )
            assert done.returncode == 0, done.stderr
            said = done.stdout
    assert said.endswith(next(text for language, _, text in BLOCKS if language == "text"))


def test_its_bounds_are_the_codes() -> None:
    assert (
        f"{compiler.MAX_SOURCE_BYTES >> 20} MiB; protoc runs in its own process for at most {compiler.MAX_SECONDS} s"
        in PAGE
    )
    assert f"and {compiler.MAX_MEMORY >> 30} GiB, and cannot read other files" in PAGE
    assert f"| {message.MAX_DEPTH} levels below the payload, on the wire and in JSON |" in PAGE
    assert f"and its nested messages | {message.MAX_DEFAULTS:,} |" in PAGE
    assert f"| {descriptors.MAX_MESSAGES:,} |" in PAGE
    assert f"of rules, {message.MAX_VIOLATIONS} |" in PAGE


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
