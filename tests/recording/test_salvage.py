import dataclasses
import datetime
import decimal
import enum
import json
import math
import uuid
from collections import UserDict
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.recording.salvage import MAX_DEPTH, clean_text, is_deeper_than, safe_str, salvage


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


class Hostile:
    """Raises in whatever one asks it."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __hash__ = __repr__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __bool__(self) -> bool:
        raise RuntimeError("no")


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items for you")


class HostileList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no items for you")


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
        (2**70, str(2**70)),
        ("a\ud800b", "a?b"),
        (complex(1, 2), "(1+2j)"),
        (msgspec.Raw(b"{oops"), "{oops"),
    ],
)
def test_a_value_becomes_the_nearest_data_that_json_has(value: Any, data: Any) -> None:
    assert salvage(value)[0] == data


@pytest.mark.parametrize(
    "around", [lambda bad: Point(1, bad), lambda bad: Order(1, bad), lambda bad: {"n": 1, "rest": bad}]
)
def test_one_bad_value_spoils_nothing_around_it(around: Any) -> None:
    data, problem = salvage(around(complex(0, 1)))

    assert data["rest"] == "1j"
    assert 1 in data.values()
    assert problem == "complex has no JSON form, its repr is written"


@pytest.mark.parametrize(
    "value",
    [Hostile(), HostileList([1]), [Hostile()], {"k": Hostile()}, [10**5000]],
    ids=["object", "list", "item", "member", "digits"],
)
def test_code_that_raises_is_described(value: Any) -> None:
    data, problem = salvage(value)

    assert "<" in json.dumps(data)
    assert problem


def test_a_dict_stays_a_dict_even_if_it_cannot_be_read() -> None:
    data, problem = salvage(HostileDict(a=1))

    assert data == {"value": "<HostileDict>"}
    assert problem == "HostileDict cannot be read: RuntimeError"


def test_a_cycle_is_cut_off() -> None:
    data, problem = salvage(cyclic())

    assert depth(data) <= MAX_DEPTH + 1
    assert problem == "too deep or too large, cut off"


def test_a_hundred_thousand_levels_are_cut_off() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    data, problem = salvage(deep)

    assert depth(data) <= MAX_DEPTH + 1
    assert "cut off" in problem


def test_a_large_list_and_large_texts_are_cut_off_in_all() -> None:
    assert len(salvage(list(range(10**6)))[0]) <= 10_001
    data, problem = salvage(["x" * 100_000] * 5000)
    assert len(json.dumps(data)) < 800_000
    assert problem == "too large, cut off"
    assert list(salvage({"x" * 100_000: 1})[0]) == ["x" * 65536 + "…"]


def test_a_dict_that_another_thread_changes_while_it_is_read_is_no_error() -> None:
    class Changing(dict[str, Any]):
        def items(self) -> Any:
            for key in self.keys():
                self[key + "x"] = 1
                yield key, 1

    assert salvage({"d": Changing(a=1)})[0] == {"d": "<Changing>"}


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
    data, problem = salvage(value)

    json.dumps(data).encode("ascii")
    msgspec.json.encode(data)
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

    data, _ = salvage({Key.PASSWORD: 1, b"token": 2, "o": object()})

    assert data.keys() == {"password", "token", "o"}


def test_a_mapping_is_written_as_an_object() -> None:
    data, _ = salvage({"o": object(), "m": MappingProxyType({"a": 1}), "u": UserDict(b=2)})

    assert (data["m"], data["u"]) == ({"a": 1}, {"b": 2})
