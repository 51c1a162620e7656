"""Messages by chance, with google.protobuf's own JSON as the oracle; and the protos of others."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import FieldDescriptor as Field
from google.rpc import status_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from order_proto import ORDER, encoded

from balog.common.errors import EventError
from balog.registry.protobuf import compile_proto
from balog.registry.protobuf.compiler import run_protoc
from balog.registry.protobuf.descriptors import is_map
from balog.registry.protobuf.schema import INTEGERS
from balog.registry.schema import InvalidSchemaError

ORDER_TYPE = compile_proto(ORDER)
SCHEMA = jsonschema_rs.validator_for(ORDER_TYPE.json_schema(), validate_formats=False)

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_OWN: dict[str, Any] = {
    "google.protobuf.Timestamp": st.builds(
        lambda seconds, nanos: {"seconds": seconds, "nanos": nanos},
        st.integers(-62135596800, 253402300799),
        st.integers(0, 999_999_999),
    ),
    "google.protobuf.Duration": st.builds(
        lambda seconds, nanos: {"seconds": seconds, "nanos": nanos if seconds >= 0 else -nanos},
        st.integers(-315576000000, 315576000000),
        st.integers(0, 999_999_999),
    ),
    "google.protobuf.FieldMask": st.just({"paths": ["a", "b.c_d"]}),
    "google.protobuf.Struct": st.dictionaries(
        _TEXTS,
        st.recursive(st.none() | st.booleans() | _TEXTS | st.integers(-5, 5), st.lists, max_leaves=4),
        max_size=3,
    ),
    "google.protobuf.Value": st.sampled_from([{"number_value": 1.5}, {"null_value": 0}, {"string_value": "a"}]),
}  # fmt: skip


def _scalars(field: Any) -> Any:
    if field.type in INTEGERS:
        least, most = INTEGERS[field.type]
        return st.sampled_from([least, -1 if least else 0, 0, 1, most]) | st.integers(least, most)
    if field.type == Field.TYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    return {
        Field.TYPE_STRING: _TEXTS,
        Field.TYPE_BYTES: st.binary(max_size=8),
        Field.TYPE_BOOL: st.booleans(),
        Field.TYPE_FLOAT: st.floats(width=32, allow_nan=False) | st.just(math.nan),
        Field.TYPE_DOUBLE: st.floats(allow_nan=False) | st.just(math.nan),
    }[field.type]


def messages(descriptor: Any, depth: int = 2) -> Any:
    """Draw messages of a descriptor, of which no more than ``depth`` lie in each other."""

    @st.composite
    def draw_message(draw: Any) -> Any:
        message = message_factory.GetMessageClass(descriptor)()
        if descriptor.full_name == "google.protobuf.Struct":
            message.update(draw(_OWN[descriptor.full_name]))
            return message
        if descriptor.full_name in _OWN:
            for name, value in draw(_OWN[descriptor.full_name]).items():
                held = getattr(message, name)
                held.extend(value) if isinstance(value, list) else setattr(message, name, value)
            return message
        fields = [field for field in descriptor.fields if field.message_type is None or depth]
        for field in draw(st.lists(st.sampled_from(fields), unique_by=lambda field: field.number, max_size=6)):
            _fill(draw, message, field, depth)
        return message

    return draw_message()


def _fill(draw: Any, message: Any, field: Any, depth: int) -> None:
    held = getattr(message, field.name)
    if is_map(field):
        entry = field.message_type.fields_by_name
        for key in draw(st.sets(_scalars(entry["key"]), max_size=2)):
            if entry["value"].message_type is None:
                held[key] = draw(_scalars(entry["value"]))
            else:
                held[key].CopyFrom(draw(messages(entry["value"].message_type, depth - 1)))
    elif field.message_type is not None:
        for _ in range(draw(st.integers(1, 2)) if field.is_repeated else 1):
            (held.add() if field.is_repeated else held).CopyFrom(draw(messages(field.message_type, depth - 1)))
    elif field.is_repeated:
        held.extend(draw(st.lists(_scalars(field), max_size=3)))
    else:
        setattr(message, field.name, draw(_scalars(field)))


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float) and ours and math.isfinite(ours):
        return math.isclose(ours, theirs, rel_tol=1e-6)  # of 32 bits, there are two ways to be short
    return bool(ours == theirs)


@settings(deadline=None)
@given(messages(ORDER_TYPE.descriptor))
def test_a_message_is_stored_as_protobuf_itself_writes_it_and_comes_back_byte_by_byte(message: Any) -> None:
    wire = message.SerializeToString(deterministic=True)
    stored = ORDER_TYPE.read(wire)[0]
    assert _same(json.loads(stored), json_format.MessageToDict(message, always_print_fields_with_no_presence=True))
    assert ORDER_TYPE.check(stored) == ORDER_TYPE.check(json_format.MessageToJson(message).encode()) == []
    assert encoded(ORDER_TYPE, stored) == wire
    assert SCHEMA.is_valid(json.loads(stored))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 65), 1 << 65) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "1", "-1", "a", "RED", "NaN", "1.5s", "true", "2026-01-01T00:00:00Z", "YQ=="]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.sampled_from(["sku", "sizes", "1", "true"]), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from([field.json_name for field in ORDER_TYPE.descriptor.fields]), _VALUES, max_size=3)
)
def test_what_is_taken_is_taken_by_protobuf_and_by_the_json_schema(payload: dict[str, Any]) -> None:
    text = json.dumps(payload).encode()
    if ORDER_TYPE.check(text) == []:
        encoded(ORDER_TYPE, text)
        assert SCHEMA.is_valid(payload)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_one_refusal(wire: bytes) -> None:
    try:
        stored = ORDER_TYPE.read(wire)[0]
    except EventError:
        return
    assert ORDER_TYPE.check(stored) == []


_GOOGLE = Path(status_pb2.__file__).parent.parent
_OTHERS = sorted(path for folder in ("type", "rpc") for path in (_GOOGLE / folder).glob("*.proto"))


@pytest.mark.parametrize("path", _OTHERS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_messages_of_others_go_there_and_back(path: Path) -> None:
    source = path.read_bytes()
    try:
        file = run_protoc(source).file[-1]
    except InvalidSchemaError as error:
        pytest.skip(f"it imports another file: {error}")
    for proto in file.message_type:
        name = f"{file.package}.{proto.name}"
        try:
            compiled = compile_proto(source, name)
        except InvalidSchemaError as error:
            assert "Any" in str(error)  # noqa: PT017
            continue
        stored = compiled.read(b"")[0]
        assert compiled.check(stored) == []
        assert encoded(compiled, stored) == b""
        assert jsonschema_rs.validator_for(compiled.json_schema()).is_valid(json.loads(stored))
