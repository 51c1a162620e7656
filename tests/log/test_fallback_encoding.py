import dataclasses
import datetime
import decimal
import enum
import json
import math
import uuid
from collections import UserDict
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.duplicate_keys import has_duplicate_key
from balog.log.values.encoding import encode_object
from balog.log.values.fallback_encoding import make_encodable
from balog.log.values.json_values import (
    MAX_BYTES,
    MAX_LEVELS,
    clean_text,
    is_deeper_than,
    safe_str,
)
from balog.log.values.value_encoder import encode_unchanged
from tests.log.test_logger import Hostile


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Point(msgspec.Struct):
    x: int
    rest: Any = None


@dataclasses.dataclass
class Order:
    number: int
    rest: Any = None


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items for you")


class HostileList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no items for you")


class HostileMapping(UserDict[str, Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no items for you")

    keys = items = __iter__  # type: ignore[assignment]


class Text(str):
    """Like what templating libraries hand out."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")


def cyclic() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["again"] = [loop]
    return loop


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"a": [1, 2.5, None, True, "x"]}, {"a": [1, 2.5, None, True, "x"]}),
        ((1, 2), [1, 2]),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "(1, 2)": "c"}),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (decimal.Decimal("1.50"), "1.50"),
        (Colour.RED, "red"),
        (Level.LOW, 1),
        (b"ab", "YWI="),
        (Text("x"), "x"),
        (Point(1, Order(2, [Point(3)])), {"x": 1, "rest": {"number": 2, "rest": [{"x": 3, "rest": None}]}}),
        (2**70, 2**70),
    ],
)
def test_a_value_becomes_the_nearest_data_that_json_has(value: Any, data: Any) -> None:
    assert written(make_encodable(value)[0]) == data


def written(data: Any) -> Any:
    return json.loads(msgspec.json.encode(data))


class Number(int):
    pass


class Share(float):
    pass


class Moment(datetime.datetime):
    pass


class Day(datetime.date):
    pass


class Price(decimal.Decimal):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Text("x"), "x"),
        (Number(5), 5),
        (Share(2.5), 2.5),
        (Moment(2026, 1, 2, tzinfo=datetime.timezone.utc), "2026-01-02T00:00:00+00:00"),
        (Day(2026, 1, 2), "2026-01-02"),
        (Price("1.50"), "1.50"),
    ],
)
def test_a_value_of_a_subclass_is_written_as_that_of_its_class_and_is_no_problem(value: Any, data: Any) -> None:
    assert json.loads(encode_unchanged({"v": value, "list": [value]})[0]) == {"v": data, "list": [data]}
    assert written(make_encodable({"v": value, "odd": 1j})[0]) == {"v": data, "odd": "1j"}
    assert make_encodable({"v": value, "odd": 1j})[1] == "complex has no JSON form, its repr is written, at $.odd"


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    value = {
        "rows": numpy.int64(3),
        "share": numpy.float64(2.5),
        "half": numpy.float32(1.5),
        "ok": numpy.bool_(True),
        "name": numpy.str_("users"),
    }

    assert json.loads(encode_unchanged(value)[0]) == {"rows": 3, "share": 2.5, "half": 1.5, "ok": True, "name": "users"}
    for odd in (numpy.float64("nan"), numpy.float32("inf")):
        assert make_encodable({"v": odd}) == ({"v": None}, "a number that is nan or infinite, null is written, at $.v")


def test_times_of_pandas_keep_their_nanoseconds() -> None:
    pandas = pytest.importorskip("pandas")

    encoded = encode_unchanged({"at": pandas.Timestamp("2026-01-02T03:04:05.123456789Z")})[0]

    assert encoded == b'{"at":"2026-01-02T03:04:05.123456789+00:00"}'


def test_methods_of_a_container_s_subclass_are_not_called() -> None:
    data, problem = make_encodable({"dict": HostileDict(a=1, b=1j), "list": HostileList([1, 1j])})

    assert data == {"dict": {"a": 1, "b": "1j"}, "list": [1, "1j"]}
    assert problem == "complex has no JSON form, its repr is written, at $.dict.b and 1 more"


def test_a_mapping_that_cannot_be_read_costs_itself_alone() -> None:
    data, problem = make_encodable({"mapping": HostileMapping(), "n": 1})

    assert data == {"mapping": "<HostileMapping>", "n": 1}
    assert problem == "HostileMapping cannot be read: RuntimeError, at $.mapping"


def test_a_cycle_is_cut_off_where_it_closes() -> None:
    data, problem = make_encodable({**cyclic(), "twice": [[1], [1]]})

    assert data["again"] == [{"again": "…"}]
    assert data["twice"] == [[1], [1]]
    assert problem == "inside itself, cut off, at $.again[0].again"


def test_a_hundred_thousand_levels_are_cut_off() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    data, problem = make_encodable(deep)

    assert depth({"value": data}) == MAX_LEVELS
    assert problem.startswith(f"deeper than {MAX_LEVELS} levels, cut off, at $[0][0]")


def test_odd_values_of_one_kind_are_counted_and_the_first_is_named() -> None:
    data, problem = make_encodable({"rows": [{"n": n, "odd key": 1j} for n in range(100)], "nan": [math.nan, 1.5]})

    assert data["rows"] == [{"n": n, "odd key": "1j"} for n in range(100)]
    assert data["nan"] == [None, 1.5]
    assert problem.split("; ") == [
        "a number that is nan or infinite, null is written, at $.nan[0]",
        'complex has no JSON form, its repr is written, at $.rows[0]["odd key"] and 99 more',
    ]


def test_what_is_too_large_in_all_is_cut_where_it_is_large_and_every_cut_is_counted() -> None:
    small = {"a": 1, "b": {"c": ["x"] * 100}}
    data, problem = make_encodable({"rows": list(range(10**6)), "text": "x" * 1_000_000, **small})

    assert len(msgspec.json.encode(data)) <= MAX_BYTES
    assert data["text"] == "x" * 1_000_000
    assert {name: data[name] for name in small} == small
    kept = len(data["rows"])
    assert data["rows"] == list(range(kept))
    assert problem == f"{10**6 - kept} of {10**6} items left out, at $.rows"

    data, problem = make_encodable({"text": "\0é" * 10**6, "n": 1})
    kept = len(data["text"]) - 1
    assert kept > 500_000
    assert len(msgspec.json.encode(data)) <= MAX_BYTES
    assert problem == f"{2 * 10**6 - kept} of {2 * 10**6} characters left out, at $.text"

    data, problem = make_encodable({"names": {f"{number}": number for number in range(10**6)}, "n": 1})
    assert problem == f"{10**6 - len(data['names'])} of {10**6} members left out, at $.names"
    assert list(make_encodable({"x" * 100_000: 1})[0]) == ["x" * 100_000]


def test_problems_are_bounded_and_counted() -> None:
    data, problem = make_encodable({f"text{number}": "x" * (100_000 + number) for number in range(200)})

    assert problem.count("left out") == 50
    assert problem.endswith("; and 119 more changes")
    assert len(problem) < 10_000
    assert len(data) == 200


def test_a_struct_keeps_its_tag_its_names_and_what_it_leaves_out() -> None:
    class Sale(msgspec.Struct, tag_field="cls_type", tag="sale", rename="camel", omit_defaults=True):
        unit_price: Any
        items: list[int] = []
        note: str | None = None
        extra: Any = msgspec.UNSET

    class Pair(msgspec.Struct, array_like=True, tag="pair"):
        left: Any
        right: int = 2

    assert make_encodable(Sale(1j))[0] == {"cls_type": "sale", "unitPrice": "1j"}
    assert make_encodable(Sale(1j, [1], "n", 2))[0] == {
        "cls_type": "sale",
        "unitPrice": "1j",
        "items": [1],
        "note": "n",
        "extra": 2,
    }
    assert make_encodable([Pair(1j)])[0] == [["pair", "1j", 2]]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.datetimes()
    | st.sampled_from([Colour.RED, Hostile, object(), Text("\ud800"), range(3), len, ...]),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner) | st.tuples(inner, inner)
    ),
    max_leaves=15,
)


@given(value=values)
def test_anything_can_be_written_by_any_json_encoder(value: Any) -> None:
    data, problem = make_encodable(value)

    json.dumps(json.loads(msgspec.json.encode(data))).encode("ascii")
    assert isinstance(problem, str)
    assert isinstance(data, dict) or not isinstance(value, dict)


@given(text=st.text())
def test_clean_text_is_utf_8_and_leaves_good_text_alone(text: str) -> None:
    cleaned = clean_text(text)

    assert len(cleaned) == len(text)
    surrogates = [char for char in text if "\ud800" <= char <= "\udfff"]
    assert cleaned.count("?") == text.count("?") + len(surrogates)
    cleaned.encode()


def test_safe_str_of_what_raises_names_the_type_and_the_error() -> None:
    assert safe_str(Hostile()) == "<Hostile, whose str raised RuntimeError>"
    assert safe_str(Hostile(), repr) == "<Hostile, whose repr raised RuntimeError>"
    assert safe_str(1.5) == "1.5"


json_data = st.recursive(
    st.none() | st.text(alphabet='[]{}"\\x', max_size=6) | st.floats().filter(math.isfinite),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(value=json_data, levels=st.integers(0, 6))
def test_depth_is_told_from_the_encoded_document(value: Any, levels: int) -> None:
    assert is_deeper_than(json.dumps(value).encode(), levels) == (depth(value) > levels)


def test_keys_that_json_does_not_have_are_written_so_that_their_names_can_be_told() -> None:
    class Key(enum.Enum):
        PASSWORD = "password"

    data, _ = make_encodable({Key.PASSWORD: 1, b"token": 2, "o": object()})

    assert data.keys() == {"password", "token", "o"}


@pytest.mark.parametrize(
    "members",
    [
        {1: "a", "1": "b"},
        {"red": 1, Colour.RED: 2},
        {1.5: "a", "1.5": "b"},
        {uuid.UUID(int=0): 1, str(uuid.UUID(int=0)): 2},
        {-1: [1], "-1": {"x": 1}, "-1 2": 3},
    ],
)
@pytest.mark.parametrize(
    "shape",
    [
        lambda inner: inner,
        lambda inner: {"a": inner},
        lambda inner: {"a": [{}, (inner,)]},
        lambda inner: {"a": {}, "b": Point(1, inner)},
        lambda inner: {"a": Order(1, inner)},
    ],
)
def test_keys_that_are_written_the_same_stay_two(shape: Any, members: Any) -> None:
    with pytest.raises(ValueError, match="written the same"):
        encode_unchanged(shape(members))
    encoded = encode_object(shape(members), strict=False)
    assert not has_duplicate_key(encoded)
    found = json.loads(encoded)
    problem = found.pop("problem")
    assert problem.startswith("two keys that are written the same, one has a number added, at $")
    text = json.dumps(found)
    for value in members.values():
        assert json.dumps(value) in text


def test_raw_with_a_key_twice_keeps_the_last_and_names_it() -> None:
    for value in (msgspec.Raw(b'{"a":1,"a":2}'), {"part": msgspec.Raw(b'{"a":1,"\\u0061":2}')}):
        found = json.loads(encode_object(value, strict=False))
        assert found.get("part", found)["a"] == 2
        assert "Raw with a key twice" in found["problem"]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.integers(0, 2) | st.sampled_from(["0", "1", "2", "a"]), inner, max_size=4)
        ),
        max_leaves=10,
    )
)
def test_no_object_is_ever_written_with_a_key_twice(value: Any) -> None:
    assert not has_duplicate_key(encode_object({"a": value}, strict=False))
