"""What protoc takes, and what is said of what it does not take."""

from __future__ import annotations

import pytest

from balog.registry.protobuf import compile_proto
from balog.registry.schema import InvalidSchemaError


def refusal(source: str | bytes, message: str = "") -> str:
    with pytest.raises(InvalidSchemaError) as caught:
        compile_proto(source.encode() if isinstance(source, str) else source, message, "order/1.0.0")
    return str(caught.value)


LINES = b'syntax = "proto3"; package shop; message Line { int32 n = 1; } message Order { repeated Line lines = 1; }'


@pytest.mark.parametrize(
    ("source", "named", "name"),
    [
        (LINES, "", "shop.Order"),
        (LINES, "Line", "shop.Line"),
        (LINES, "shop.Line", "shop.Line"),
        (b'syntax = "proto3"; message Tree { repeated Tree branches = 1; }', "", "Tree"),
    ],
)
def test_the_payload_is_the_message_that_is_named_or_that_no_other_uses(source: bytes, named: str, name: str) -> None:
    assert compile_proto(source, named).name == name


def test_of_several_that_could_be_meant_none_is_guessed() -> None:
    source = 'syntax = "proto3"; message A {} message B {}'
    assert refusal(source) == "order/1.0.0: the message of the payload is ambiguous; name it; there are A, B"
    assert "has no message C; there are A, B" in refusal(source, "C")


@pytest.mark.parametrize(
    "head", ['syntax = "proto2";', 'syntax = "proto3";', 'edition = "2023";'], ids=["proto2", "proto3", "edition"]
)
def test_every_syntax_is_taken(head: str) -> None:
    label = "optional " if "proto2" in head else ""
    assert compile_proto(f"{head} message A {{ {label}int32 a = 1; }}".encode()).check(b'{"a": 1}') == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "schema.proto"])
def test_an_import_reads_no_file_of_this_machine(path: str) -> None:
    said = refusal(f'syntax = "proto3"; import "{path}"; message A {{}}')
    assert said.startswith("order/1.0.0: 1:20: ")
    assert "root:" not in said


IMPORTS_ANY = 'syntax = "proto3"; import "google/protobuf/any.proto"; '


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"", "an empty file has no message"),
        (b'syntax = "proto3";', "there is none in the file"),
        (b"\xff\xfe\x00", "order/1.0.0: 1:1: "),
        (b" " * (1 << 20) + b"//", "larger than 1 MiB"),
        (b'syntax = "proto3"; ' + b"message A { " * 5000, "recursion limit"),
        (b'edition = "2099"; message A {}', "Unknown edition"),
        ('syntax = "proto3";\nmessage A {\n  int32 x = 1\n}\n', 'order/1.0.0: 4:1: Expected ";".'),
        ('syntax = "proto3"; message A {} message A {}', 'order/1.0.0: 1:41: "A" is already defined.'),
        (
            'syntax = "proto3"; import "google/type/money.proto"; message A {}',
            "imports google/type/money.proto, and only",
        ),
        ('syntax = "proto3"; import "other.proto"; message A {}', "imports other.proto, and only"),
        *(
            (f'syntax = "proto3"; package {package}; message A {{}}', f"the package {package} is reserved")
            for package in ("google.protobuf", "google.protobuf.mine", "buf.validate")
        ),
        (IMPORTS_ANY + "message A { map<string, google.protobuf.Any> m = 1; }", "google.protobuf.Any"),
        (IMPORTS_ANY + "message A { B b = 1; } message B { google.protobuf.Any x = 1; }", "google.protobuf.Any"),
        ('syntax = "proto2"; message A { optional int32 a = 1; extensions 100 to 200; }', "A is extendable"),
        (
            'syntax = "proto2"; message A { optional int32 fooBar = 1; optional int32 foo_bar = 2; }',
            "duplicate json_name (fooBar)",
        ),
    ],
    ids=lambda given: str(given)[:60],
)
def test_what_is_not_taken_is_told_in_one_line(source: str | bytes, said: str) -> None:
    told = refusal(source)
    assert said in told
    assert "\n" not in told
    assert len(told) < 500


def test_a_well_known_type_is_no_payload() -> None:
    source = 'syntax = "proto3"; import "google/protobuf/struct.proto"; message A { google.protobuf.Struct s = 1; }'
    assert "has no message google.protobuf.Struct" in refusal(source, "google.protobuf.Struct")


def test_two_versions_of_a_message_live_apart() -> None:
    old = compile_proto(b'syntax = "proto3"; message A { int32 a = 1; }')
    new = compile_proto(b'syntax = "proto3"; message A { string a = 1; }')
    assert old.check(b'{"a": 1}') == []
    assert new.check(b'{"a": "1"}') == []
    assert [fault.reason for fault in new.check(b'{"a": 1}')] == ['is not of types "null", "string"']


def test_the_same_content_is_compiled_once() -> None:
    source = b'syntax = "proto3"; message Once { int32 a = 1; }'
    assert compile_proto(source, where="a") is compile_proto(source, where="b")
