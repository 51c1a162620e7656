"""Schemas from records, and schemas said in Python."""

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap.errors import SchemaError
from balog.tap.schema import infer, types
from balog.tap.schema.documents import check


def test_all_may_be_null_but_the_keys() -> None:
    records = [
        {"id": 1, "name": "Ann", "at": "2026-11-22T08:00:00Z", "on": "2026-11-22", "ok": True, "gone": None},
        {"id": 2, "name": None, "at": "2026-11-22T08:00:00.5+01:00", "on": "2026-01-31", "sum": 1, "tags": ["a"]},
        {"id": 3, "name": "2026-11-22", "sum": 1.5, "to": {"zip": 1}},
    ]
    assert infer(records, keys=["id"]) == {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["null", "string"]},
            "at": {"type": ["null", "string"], "format": "date-time"},
            "on": {"type": ["null", "string"], "format": "date"},
            "ok": {"type": ["null", "boolean"]},
            "gone": {"type": ["null", "string"]},
            "sum": {"type": ["null", "number"]},
            "tags": {"type": ["null", "array"], "items": {"type": ["null", "string"]}},
            "to": {"type": ["null", "object"], "properties": {"zip": {"type": ["null", "integer"]}}},
        },
    }


def test_values_are_seen_as_they_will_be_written() -> None:
    record = {"at": datetime(2026, 11, 22, tzinfo=timezone.utc), "on": date(2026, 11, 22), "sum": Decimal("1.10")}
    found = infer([record])["properties"]
    assert found["at"]["format"] == "date-time"
    assert found["on"]["format"] == "date"
    assert found["sum"]["type"] == ["null", "number"]


@pytest.mark.parametrize(
    "text", ["2026-02-30", "2026-11-22T25:00:00Z", "2026-11-22T08:00:00", "20261122", "2026-11-22T08:00:00+25:00"]
)
def test_what_only_looks_like_a_time_is_a_text(text: str) -> None:
    assert infer([{"at": text}])["properties"]["at"] == {"type": ["null", "string"]}


def test_few_texts_that_come_often_are_no_choice() -> None:
    found = infer([{"kind": "ab"[n % 2]} for n in range(100)])
    assert found["properties"]["kind"] == {"type": ["null", "string"]}


_RECORDS = st.lists(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.recursive(
            st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-1, 1) | st.sampled_from(["", "2026-11-22"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
            max_leaves=6,
        ),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=100, deadline=None)
@given(_RECORDS)
def test_each_record_is_valid_by_the_schema_made_of_them(records: list[Any]) -> None:
    found = infer(records)
    check(found)
    validator = jsonschema.Draft202012Validator(found, format_checker=jsonschema.FormatChecker())
    for record in records:
        validator.validate(record)
        validator.validate(dict.fromkeys(record))


def test_no_more_records_are_asked_for_than_are_looked_at() -> None:
    asked = iter(range(100))
    assert infer(({"id": number} for number in asked), most=3)["properties"] == {"id": {"type": ["null", "integer"]}}
    assert next(asked) == 3


def test_times_without_a_zone_are_times() -> None:
    found = infer([{"at": datetime(2026, 1, 31)}])
    assert found["properties"]["at"] == {"type": ["null", "string"], "format": "date-time"}


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([], "there are no records to infer it from; declare a schema"),
        ([{}, "x"], "record 2 can't be one: expected an object; found str"),
        ([{"a": object()}], "record 1 can't be one: Encoding objects of type object is unsupported"),
        ([{"id": None}], "record 1 has no 'id', which is a key"),
    ],
)
def test_records_that_give_no_schema(records: list[Any], reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        infer(records, keys=["id"] if "id" in str(records) else [])
    assert str(caught.value) == reason


def test_a_schema_said_in_python() -> None:
    schema = types.obj(
        {
            "id": types.integer(null=False, minimum=1),
            "name": types.string(max_length=10),
            "at": types.date_time(),
            "on": types.date(null=False),
            "price": types.decimal(6, 2),
            "weight": types.number(),
            "kind": types.one_of("a", "b"),
            "tags": types.array(types.string(null=False)),
            "ok": types.boolean(),
            "to": types.obj({"zip": types.string()}, null=True),
        },
        required=["id"],
    )
    check(schema)
    validator = jsonschema.Draft202012Validator(schema)
    nulls = dict.fromkeys(("name", "at", "price", "weight", "kind", "tags", "ok", "to"))
    validator.validate({"id": 1, **nulls})
    validator.validate({"id": 1, "price": 9999.5, "kind": "b", "tags": ["x"], "to": {"zip": "1"}, "more": 1})
    wrong = [{}, {"id": None}, {"id": 0}, {"id": 1, "on": None}, {"id": 1, "price": 10000}, {"id": 1, "kind": "c"}]
    wrong += [{"id": 1, "name": "x" * 11}, {"id": 1, "tags": [None]}]
    assert [record for record in wrong if validator.is_valid(record)] == []
    assert schema["properties"]["price"]["multipleOf"] == 0.01
    assert msgspec.json.encode(schema)


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (2, 3), (101, 0), (5, -1)])
def test_a_decimal_of_no_digits(precision: int, scale: int) -> None:
    with pytest.raises(ValueError, match="precision"):
        types.decimal(precision, scale)
