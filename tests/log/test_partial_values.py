"""Values that cannot be read in whole: the rest is written, and the event's ``problem`` names what is missing."""

import collections.abc
import datetime
import itertools
import json
import zoneinfo
from collections.abc import Iterator
from typing import Any

import pandas
import pyarrow
import pydantic
import pytest
import sqlalchemy

from balog.log.values.value_encoder import encode, encode_plain, encode_unchanged
from tests.stand_ins.programs import run_python

UTC = datetime.timezone.utc


def encoded(value: Any) -> tuple[Any, str]:
    """Return a value as it is written, and the problem."""
    line, _, _ = encode({"v": value})
    data = json.loads(line)
    return data["v"], data.get("problem", "")


def is_refused_if_strict(value: Any) -> bool:
    try:
        encode_unchanged({"v": value})
    except Exception:
        return True
    return False


def row_of_database() -> Any:
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        return connection.execute(sqlalchemy.text("select 1 id, 2 id, 3 x")).first()


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: pandas.DataFrame([[1, 2]], columns=["a", "a"]), [{"a": 1, "a 2": 2}]),
        (lambda: pandas.DataFrame([[1, 2]], columns=[1, "1"]), [{"1": 1, "1 2": 2}]),
        (lambda: pyarrow.table([[1], [2]], names=["a", "a"]), [{"a": 1, "a 2": 2}]),
        (lambda: pyarrow.record_batch([[1], [2]], names=["a", "a"]), [{"a": 1, "a 2": 2}]),
        (row_of_database, {"id": 1, "id 2": 2, "x": 3}),
        (lambda: {1: "a", "1": "b"}, {"1": "a", "1 2": "b"}),
    ],
)
def test_names_that_are_the_same_stay_both(make: Any, wanted: Any) -> None:
    """A number is added to the second, as for keys of a dict."""
    value, problem = encoded(make())

    assert value == wanted
    assert "two keys that are written the same" in problem
    assert is_refused_if_strict(make())


@pytest.mark.parametrize(
    "moment",
    [
        datetime.datetime(1890, 1, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-1, seconds=-1))),
        datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        datetime.datetime(2026, 1, 1, tzinfo=UTC),
    ],
)
def test_an_offset_with_seconds_loses_none(moment: datetime.datetime) -> None:
    """RFC 3339 has no seconds in an offset, so such a time is in UTC, also as a key and beside an odd value."""
    for payload in ({"v": moment}, {"v": [moment]}, {"v": moment, "odd": 1j}, {"v": moment, "date": {1}}):
        line = encode(payload)[0]
        found = json.loads(line)["v"]
        found = found[0] if isinstance(found, list) else found
        assert datetime.datetime.fromisoformat(found) == moment
    (key,) = encoded({moment: 1})[0]
    assert datetime.datetime.fromisoformat(key) == moment
    plain = encode_plain({"v": moment})
    assert plain is None or datetime.datetime.fromisoformat(json.loads(plain)["v"]) == moment


def test_a_time_with_an_odd_offset_is_exact() -> None:
    """It has no date, so no UTC."""
    value = datetime.time(1, 2, tzinfo=datetime.timezone(datetime.timedelta(seconds=3208)))

    assert encoded(value) == ("01:02:00+00:53:28", "")
    early = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(seconds=3208)))
    assert encoded(early) == ("0001-01-01T00:00:00+00:53:28", "")


def test_a_key_of_bytes_that_are_no_text_is_named() -> None:
    """A replacement character would be a silent loss."""
    assert encoded({b"\xff": 1}) == ({"b'\\xff'": 1}, "a key without a JSON form, its repr is written, at $.v")


def test_a_time_that_python_lacks_costs_itself_only() -> None:
    """Arrow has years after 9999."""
    times = pyarrow.array([1, 2**40, None], pyarrow.timestamp("s"))
    rows, problem = encoded(pyarrow.table({"t": times, "n": [1, 2, 3]}))

    assert [row["n"] for row in rows] == [1, 2, 3]
    assert rows[0]["t"] == "1970-01-01T00:00:01"
    assert rows[1]["t"] == "<value out of range: 1099511627776>"
    assert rows[2]["t"] is None
    assert problem == "TimestampScalar is out of range, at $.v[1].t"


class Broken(pydantic.BaseModel):
    a: int
    b: pydantic.SecretStr
    c: str = "c"

    @pydantic.field_serializer("a")
    def fail(self, value: int) -> int:
        raise RuntimeError("no")


def test_a_serializer_that_raises_costs_its_field_only() -> None:
    value, problem = encoded(Broken(a=1, b=pydantic.SecretStr("hunter2")))

    assert value == {"a": "<PydanticSerializationError>", "b": "**********", "c": "c"}
    assert "a raised PydanticSerializationError" in problem


def test_a_generator_that_raises_keeps_its_first_items() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("no")

    assert encoded(numbers()) == ([1, 2], "generator raised ValueError after 2 items, at $.v")


class Own(collections.abc.Mapping[Any, Any]):
    """A mapping with one key that raises, or whose keys never end."""

    def __init__(self, keys: Any) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys())

    def __getitem__(self, key: Any) -> Any:
        if key == "bad":
            raise RuntimeError("no")
        return key


def test_a_member_that_raises_costs_itself_only() -> None:
    value, problem = encoded(Own(lambda: ["a", "bad", "c"]))

    assert value == {"a": "a", "bad": "<RuntimeError>", "c": "c"}
    assert problem == "a member of Own raised RuntimeError, at $.v"


@pytest.mark.parametrize("view", [lambda value: value, lambda value: value.keys(), lambda value: value.items()])
def test_a_mapping_that_never_ends_is_cut(view: Any) -> None:
    value, problem = encoded(view(Own(itertools.count)))

    assert len(value) == 10_000
    assert "left out" in problem


def test_one_odd_value_in_a_huge_container_costs_bounded_work() -> None:
    """The parts that are cut off anyway are not looked at."""
    value, problem = encoded([1j, *range(150_000)])

    assert len(value) == 100_000 - 1
    assert "50002 of 150001 items left out" in problem
    members, problem = encoded({"odd": 1j, **dict.fromkeys(map(str, range(150_000)), 1)})
    assert len(members) == 100_000 - 1
    assert "members left out" in problem


@pytest.mark.parametrize("options", [[], ["-W", "error"]])
def test_pydantic_s_warnings_are_not_printed(options: list[str]) -> None:
    """They have the values of the fields, and so their secrets."""
    program = """
import balog, pydantic
class Settings(pydantic.BaseModel):
    dsn: pydantic.PostgresDsn = "postgres://app:Zx9qKw7Lm2Vt@db/shop"
balog.configure("stderr")
balog.get_logger("t").info("start", payload=Settings())
"""
    ran = run_python(program, *options)

    (line,) = ran.stderr.splitlines()
    assert "[redacted]" in json.loads(line)["payload"]["dsn"]
    assert "Zx9qKw7Lm2Vt" not in line
