"""What values become by the schema, and what is refused; records of other forms; what is left out."""

import dataclasses
import json
import uuid
from collections import OrderedDict, namedtuple
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap.catalog import CatalogEntry
from balog.tap.errors import RecordError, TapError
from balog.tap.records import Transformer
from balog.tap.records.times import is_date_time, to_date_time


class Log:
    def __init__(self):
        self.said = []

    def warning(self, text):
        self.said.append(text)


def transformer(schema, policy="coerce", *, metadata=None, **more):
    entry = CatalogEntry(tap_stream_id="s", stream="s", schema=schema, metadata=metadata or {})
    return Transformer(entry, policy, more.pop("after", None), log=more.pop("log", Log()), **more)


def fit(schema, value, policy="coerce", **more):
    return transformer({"properties": {"a": schema}}, policy, **more)({"a": value})["a"]


class Colour(Enum):
    RED = "red"


ZONED = datetime(2026, 11, 20, 9, 46, 12, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("type", "given", "made"),
    [
        ("integer", "12", 12),
        ("integer", " -12.00 ", -12),
        ("integer", 12.0, 12),
        ("integer", Decimal("12"), 12),
        ("integer", 2**80, 2**80),
        ("number", "12", 12),
        ("number", "12.50", Decimal("12.50")),
        ("number", "123456789012345678.123456789", Decimal("123456789012345678.123456789")),
        ("number", "1e5", Decimal("1E+5")),
        ("boolean", "True", True),
        ("boolean", "0", False),
        ("string", 12, "12"),
        ("string", True, "true"),
        ("string", 1.5, "1.5"),
        ("string", {"b": [1]}, '{"b":[1]}'),
        (["null", "integer"], "", None),
        (["null", "number"], float("nan"), None),
        (["null", "string"], "", ""),
        (["integer", "string"], 1.5, "1.5"),
    ],
)
def test_what_loses_nothing_is_coerced(type, given, made):
    found = fit({"type": type}, given)
    assert (found, found.__class__) == (made, made.__class__)
    if given != made:
        with pytest.raises(RecordError):
            fit({"type": type}, given, "fail")


TENTH = Decimal("0.10")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": ["a", 0.1]}, TENTH),
        ({"const": 0.1}, TENTH),
        ({"const": {"b": [0.10]}}, {"b": [TENTH]}),
        ({"type": "number", "minimum": 0.1, "maximum": 0.1, "multipleOf": 0.1}, TENTH),
        ({"type": "array", "items": {"enum": [0.1, 0.3]}}, [TENTH]),
    ],
)
def test_a_decimal_equals_the_float_of_its_digits_in_a_schema(schema, value):
    assert fit(schema, value, "fail") == value


def test_a_decimal_is_a_number_of_its_digits():
    with pytest.raises(RecordError, match="expected a string, got a number"):
        fit({"type": "string"}, Decimal("1.50"), "fail")
    assert fit({"type": "string"}, Decimal("1.50")) == "1.50"
    times = {"type": "string", "format": "date-time"}
    assert fit(times, Decimal("1700000000.5"), epoch="seconds") == "2023-11-14T22:13:20.500000Z"


@pytest.mark.parametrize(
    ("schema", "given", "reason"),
    [
        ({"type": "number", "exclusiveMinimum": 0.1}, Decimal("0.1"), "is less than or equal to the minimum of 0.1"),
        ({"type": "array", "uniqueItems": True}, [0.1, Decimal("0.1")], "has non-unique elements"),
        ({"type": "integer"}, "x1", "expected an integer, got a string"),
        ({"type": "integer"}, "1_000", "expected an integer, got a string"),
        ({"type": "integer"}, 1.5, "expected an integer, got a number with a fraction"),
        ({"type": "integer"}, True, "expected an integer, got a boolean"),
        ({"type": "number"}, float("inf"), "expected a number that JSON can write, got one that is not finite"),
        ({"type": "number"}, "NaN", "expected a number, got a string"),
        ({"type": "number"}, "1e400", "expected a number that JSON can write, got one that is not finite"),
        ({"type": "number"}, Decimal("-1e309"), "expected a number that JSON can write, got one that is not finite"),
        ({}, Decimal("1e400"), "expected a number that JSON can write, got one that is not finite"),
        ({"type": "boolean"}, "yes", "expected a boolean, got a string"),
        ({"type": ["integer", "null"]}, [], "expected an integer or null, got an array"),
        ({"type": "object"}, "{}", "expected an object, got a string"),
        ({"type": "array"}, "a", "expected an array, got a string"),
        ({"type": "string", "format": "date-time"}, "11/12/2026", "format date-time"),
        ({"type": "string", "format": "date-time"}, "2026-02-30T00:00:00Z", "format date-time"),
        ({"type": "string", "format": "date"}, "2026-11-20T07:00:00Z", "format date"),
        ({"enum": ["a", 1]}, True, 'is not one of "a" or 1'),
        ({"const": 1}, 2, "1 was expected"),
        ({"type": "integer", "minimum": 3}, "2", "is less than the minimum of 3"),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, 3, "is less than or equal to the minimum of 3"),
        ({"type": "number", "multipleOf": 0.1}, 0.35, "is not a multiple of 0.1"),
        ({"type": "string", "maxLength": 2}, "abc", "is longer than 2 characters"),
        ({"type": "string", "pattern": "^a"}, "b", 'does not match "^a"'),
        ({"type": "string", "pattern": r"(\w+)\1\1$"}, "a" * 4000 + "b", "Max limit for backtracking count exceeded"),
        ({"type": "array", "uniqueItems": True}, [1, 1.0], "has non-unique elements"),
        ({"not": {"type": "string"}}, "a", '{"type":"string"} is not allowed for …'),
        ({"oneOf": [{"type": "integer"}, {"minimum": 1}]}, 3, "is valid under more than one of the schemas"),
        (False, 1, "False schema does not allow …"),
        ({}, object(), "Python's type object has no form in JSON"),
    ],
)
def test_what_cannot_be_coerced_is_refused_by_place_and_type(schema, given, reason):
    with pytest.raises(RecordError) as caught:
        fit(schema, given)
    assert reason in caught.value.reason
    assert caught.value.path == "$.a"


def test_one_and_zero_are_booleans():
    assert [fit({"type": "boolean"}, number) for number in (1, 0)] == [True, False]
    with pytest.raises(RecordError):
        fit({"type": "boolean"}, 2)


def test_a_fault_says_where_and_never_the_value():
    schema = {"properties": {"lines": {"items": {"properties": {"e mail": {"type": "integer"}}}}}}
    with pytest.raises(RecordError) as caught:
        transformer(schema)({"lines": [{}, {"e mail": "jo@example.com"}]})
    assert str(caught.value) == 's: $.lines[1]["e mail"]: expected an integer, got a string'
    with pytest.raises(RecordError) as caught:  # a name that the schema does not have is data, too
        transformer({"additionalProperties": {"type": "integer"}})({"jo@example.com": "x"})
    assert str(caught.value) == "s: $.*: expected an integer, got a string"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (ZONED, "2026-11-20T07:46:12Z"),
        (datetime(2026, 11, 20, 7, 46, 12, 5), "2026-11-20T07:46:12.000005Z"),
        (date(2026, 11, 20), "2026-11-20"),
        (time(7, 46, 12), "07:46:12Z"),
        (timedelta(hours=1), "PT3600S"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (b"\xff", "/w=="),
    ],
)
@pytest.mark.parametrize("policy", ["fail", "coerce"])
def test_what_only_python_has_becomes_text_by_any_policy(given, made, policy):
    assert fit({"type": "string"}, given, policy) == made


def test_mappings_and_sequences_of_any_kind_become_objects_and_arrays():
    pair = namedtuple("pair", "x y")
    made = fit({}, OrderedDict(a=(1, {2}), b=pair(1, 2), c=(n for n in [1]), d={3: "x"}), "fail")
    assert made == {"a": [1, [2]], "b": {"x": 1, "y": 2}, "c": [1], "d": {"3": "x"}}


def test_records_may_be_structs_dataclasses_and_models():
    @dataclasses.dataclass
    class Data:
        id: int

    class Model(pydantic.BaseModel):
        id: int

    Record = msgspec.defstruct("Record", [("id", int)])
    transform = transformer({"properties": {"id": {"type": "integer"}}})
    assert [transform(kind(id=3)) for kind in (Data, Model, Record)] == [{"id": 3}] * 3
    with pytest.raises(RecordError, match=r"s: \$: expected a record, which is an object, got an integer"):
        transform(5)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("2026-11-20 07:46:12", "2026-11-20T07:46:12Z"),
        ("2026-11-20T09:46:12.123456789+0200", "2026-11-20T07:46:12.123456789Z"),
        ("2026-11-20", "2026-11-20T00:00:00Z"),
        ("20261120T074612Z", "2026-11-20T07:46:12Z"),
        ("2026-11-20 07:46 UTC", "2026-11-20T07:46:00Z"),
        ("Fri, 20 Nov 2026 07:46:12 GMT", "2026-11-20T07:46:12Z"),
        ("2026-11-20T09:46:12+02:00", "2026-11-20T09:46:12+02:00"),
        (ZONED, "2026-11-20T07:46:12Z"),
    ],
)
def test_the_usual_forms_of_times_become_rfc_3339(given, made):
    assert fit({"type": "string", "format": "date-time"}, given) == made


@given(st.datetimes(timezones=st.sampled_from([timezone.utc, timezone(timedelta(hours=-5, minutes=-30))])))
def test_a_time_that_python_writes_is_the_same_instant_afterwards(when):
    for text in (when.isoformat(), str(when)):
        try:
            utc = when.astimezone(timezone.utc)
        except OverflowError:
            return
        made = to_date_time(text)
        assert is_date_time(made)
        assert datetime.fromisoformat(made.replace("Z", "+00:00")) == utc


def test_numbers_are_times_where_that_is_declared():
    schema = {"type": ["null", "string"], "format": "date-time"}
    assert fit(schema, 1_763_624_772, epoch="seconds") == "2025-11-20T07:46:12Z"
    assert fit(schema, 1_763_624_772_005, epoch="milliseconds") == "2025-11-20T07:46:12.005000Z"
    with pytest.raises(RecordError):
        fit(schema, 1_763_624_772)


def test_of_any_of_the_first_that_fits_as_it_is_counts():
    schema = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": ["string", "null"]}]}
    assert fit(schema, "some day") == "some day"
    assert fit(schema, ZONED) == "2026-11-20T07:46:12Z"
    assert fit({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "7") == 7


NESTED = {
    "properties": {
        "id": {"type": "integer"},
        "secret": {"type": "string"},
        "place": {"type": "object", "properties": {"city": {"type": "string"}, "street": {"type": "string"}}},
        "lines": {"type": "array", "items": {"properties": {"sku": {"type": "string"}, "note": {"type": "string"}}}},
    },
    "required": ["id", "secret"],
}
UNSELECTED = {
    ("properties", "secret"): {"inclusion": "available", "selected": False},
    ("properties", "place", "properties", "street"): {"inclusion": "unsupported"},
    ("properties", "lines", "items", "properties", "note"): {"selected-by-default": False},
}


def test_what_was_not_selected_is_left_out_of_records_and_schema_also_deep_inside():
    log = Log()
    transform = transformer(NESTED, metadata=UNSELECTED, log=log)
    given = {"id": 1, "secret": "x", "place": {"city": "L", "street": "s"}, "lines": [{"sku": "a", "note": "n"}]}
    before = json.dumps(given)
    assert transform(given) == {"id": 1, "place": {"city": "L"}, "lines": [{"sku": "a"}]}
    assert transform({"id": 2}) == {"id": 2}
    assert json.dumps(given) == before
    assert transform.schema["required"] == ["id"]
    assert "secret" not in transform.schema["properties"]
    assert log.said == []


def test_what_no_schema_has_is_left_out_and_told_of_once():
    log = Log()
    transform = transformer(NESTED, log=log)
    for number in range(3):
        assert transform({"id": 1, "secret": "", "new": number, "place": {"zip": 1}})["place"] == {}
    assert [text.split(" is left out")[0] for text in log.said] == ["s: $.new", "s: $.place.zip"]
    kept = transformer({"properties": {"id": {"type": "integer"}}, "additionalProperties": True})
    assert kept({"id": 1, "new": (2,)}) == {"id": 1, "new": [2]}


def test_the_hook_changes_a_copy_or_leaves_a_record_out_and_must_fit():
    def after(record):
        record["n"] = record.get("n", 0) + 1
        return record if record["n"] < 3 else None

    transform = transformer({"properties": {"n": {"type": "integer", "maximum": 1}}}, after=after)
    given = {"n": 0}
    assert transform(given) == {"n": 1}
    assert given == {"n": 0}
    with pytest.raises(RecordError, match="is greater than the maximum of 1"):
        transform({"n": 1})
    with pytest.raises(RecordError, match="which is an object, got a string"):
        transformer({}, after=lambda record: "text")({})
    out = transformer({}, after=lambda record: None)
    assert out.page([{}, {}]) == []
    assert out.left_out == 2


def test_what_refers_to_nothing_is_an_error_of_the_tap():
    with pytest.raises(TapError, match="refers to '#/definitions/x', which does not exist"):
        transformer({"properties": {"a": {"$ref": "#/definitions/x"}}})
    with pytest.raises(TapError, match="resolve it first"):
        transformer({"properties": {"a": {"$ref": "other.json"}}})


@pytest.mark.parametrize("policy", ["coerce", "fail"])
def test_a_record_without_its_key_breaks_the_schema(policy):
    """A key may be null where the schema says so; it must be there, whether the schema says so or not."""
    schema = {"properties": {"id": {"type": ["null", "integer"]}, "shop": {"type": "string"}}, "required": ["shop"]}
    entry = CatalogEntry(tap_stream_id="s", stream="s", schema=schema, key_properties=["id", "shop"])
    made = Transformer(entry, policy, log=Log())

    assert made({"id": None, "shop": "a"}) == {"id": None, "shop": "a"}
    with pytest.raises(RecordError, match=r"^s: \$\.id: is missing"):
        made({"shop": "a"})
    assert made.schema == schema


def test_a_number_where_a_time_is_wanted_is_called_a_number_and_epoch_is_named():
    schema = {"properties": {"at": {"type": ["null", "string"], "format": "date-time"}, "day": {"format": "date"}}}
    made = transformer(schema, "coerce")
    with pytest.raises(RecordError, match="format date-time, got an integer; the stream's setting epoch converts"):
        made({"at": 1_763_624_772})
    assert made({"at": float("nan"), "day": 5}) == {"at": None, "day": 5}


def test_a_schema_that_is_none_is_warned_of_and_its_types_are_kept_to():
    log = Log()
    transform = transformer({"properties": {"a": {"pattern": "["}, "b": {"type": "integer"}}}, log=log)
    assert transform({"a": "x", "b": "3"}) == {"a": "x", "b": 3}
    (said,) = log.said
    assert said.startswith("s: only types are checked, because the schema is not valid: ")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"type": "integer"}, "b": {"anyOf": [{"$ref": "#/properties/a"}, {"type": "null"}]}}}, 2),
        ({"definitions": {"x": {"minimum": 1}}, "properties": {"b": {"oneOf": [{"$ref": "#/definitions/x"}]}}}, 2),
        ({"properties": {"b": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "c": {"minimum": 1}}}, {"b": None, "c": 2}),
        ({"properties": {"b": {"anyOf": [{"type": "string", "pattern": "("}, {"type": "null"}]}}}, "x"),
    ],
)
def test_an_alternative_may_be_a_reference_or_no_valid_schema(schema, value):
    assert transformer(schema, log=Log())({"b": value}) == {"b": value}


PART = {"properties": {"a": {}, "b": {"minimum": 1}}, "required": ["a"], "allOf": [{"required": ["a", "b"]}]}
PLACE = {"type": "object", "required": ["p", "q"], "properties": {"p": {"minimum": 1}, "q": {}}}
REFERENCE = {"definitions": {"x": PLACE}, "properties": {"b": {"$ref": "#/definitions/x"}}}


@pytest.mark.parametrize(
    ("schema", "left_out", "given", "made", "broken"),
    [
        (PART, "a", {"a": 1, "b": 2}, {"b": 2}, {"a": 1}),
        (REFERENCE, "b.properties.q", {"b": {"p": 1, "q": 2}}, {"b": {"p": 1}}, {"b": {"p": 0, "q": 2}}),
    ],
)
def test_what_is_not_selected_is_not_required(schema, left_out, given, made, broken):
    transform = transformer(schema, metadata={("properties", *left_out.split(".")): {"selected": False}})
    assert transform(given) == made
    with pytest.raises(RecordError, match=r"\$\.b"):
        transform(broken)


def test_a_name_that_is_data_is_in_no_message():
    schema = {"properties": {"by": {"additionalProperties": {"properties": {"n": {"maximum": 1}}}}}}
    with pytest.raises(RecordError) as caught:
        transformer(schema)({"by": {"ann@example.com": {"n": 2}}})
    assert (caught.value.path, caught.value.reason) == ("$.by.*.n", "is greater than the maximum of 1")
