"""Encoders of a program: which applies, what their results and their errors become."""

import abc
import collections
import dataclasses
import datetime
import decimal
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy
import pytest

import balog
from balog.common.errors import ConfigError
from balog.common.redaction import Redactor
from balog.log.values.numeric_values import timedelta_text
from balog.log.values.value_encoder import ValueEncoder
from tests.stand_ins.log_outputs import Lines, recording, use_output
from tests.stand_ins.programs import run_python


class Money:
    def __init__(self, amount: Any = 5) -> None:
        self.amount = amount


class Euro(Money):
    pass


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Order:
    number: int


def logged(payload: Any, encoders: Mapping[type, Callable[[Any], Any]] | None = None) -> dict[str, Any]:
    """Log a payload, and read the line with Python's own json."""
    lines = Lines()
    with recording(lines, redactor=Redactor(), encoder=ValueEncoder(encoders)):
        balog.get_logger("a").info("x", payload=payload)
    ((_, line),) = lines.written
    data: dict[str, Any] = json.loads(line)["payload"]
    return data


def test_the_nearest_class_decides() -> None:
    encoders = {Money: lambda value: "money", Euro: lambda value: "euro", object: lambda value: "object"}

    assert logged({"v": [Money(), Euro(), object()]}, encoders) == {"v": ["money", "euro", "object"]}


def test_a_subclass_has_the_encoder_of_its_class() -> None:
    assert logged({"v": Euro(7)}, {Money: lambda value: value.amount}) == {"v": 7}


def test_an_abstract_class_includes_its_virtual_subclasses() -> None:
    class Priced(abc.ABC):  # noqa: B024 - only registers classes
        pass

    Priced.register(Money)

    assert logged({"v": Euro()}, {Priced: lambda value: "priced"}) == {"v": "priced"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (datetime.date(2026, 1, 2), datetime.date),
        (decimal.Decimal(1), decimal.Decimal),
        (b"ab", bytes),
        (Order(1), Order),
        (Point(1, 2), Point),
        (pathlib.Path("/x"), pathlib.PurePath),
        (numpy.int64(1), numpy.generic),
        ({1}, set),
    ],
)
def test_an_encoder_wins_over_the_built_in_form(value: Any, kind: type) -> None:
    assert logged({"v": value, "list": [value]}, {kind: lambda value: "own"}) == {"v": "own", "list": ["own"]}


def test_the_encoder_for_object_leaves_the_built_in_forms_alone() -> None:
    payload = {"path": pathlib.Path("/x"), "order": Order(1), "bytes": b"ab", "odd": Money()}

    assert logged(payload, {object: lambda value: "odd"}) == {
        "path": "/x",
        "order": {"number": 1},
        "bytes": "YWI=",
        "odd": "odd",
    }


def test_a_result_is_encoded_again() -> None:
    encoders = {Money: lambda value: {"at": pathlib.Path("/x"), "inner": [Order(1)], "point": Point(1, b"ab")}}

    assert logged({"v": Money()}, encoders)["v"] == {
        "at": "/x",
        "inner": [{"number": 1}],
        "point": {"x": 1, "y": "YWI="},
    }


def test_an_encoder_that_raises_costs_its_value_only() -> None:
    def fail(value: Any) -> Any:
        raise KeyError("no")

    payload = logged({"v": Money(), "path": pathlib.Path("/x"), "n": [1, None]}, {Money: fail})

    assert payload.pop("v").startswith("<")
    assert payload == {
        "path": "/x",
        "n": [1, None],
        "problem": "the encoder of Money raised KeyError, its repr is written, at $.v",
    }


def test_an_encoder_that_returns_its_value_is_stopped() -> None:
    payload = logged({"v": Money(), "n": 1}, {Money: lambda value: Money()})

    assert payload["n"] == 1
    assert payload["problem"] == "Money was converted 20 times, its repr is written, at $.v"


def test_an_encoder_whose_results_grow_is_cut_off() -> None:
    payload = logged({"v": Money(), "n": 1}, {Money: lambda value: [Money(), Money()]})

    assert payload["n"] == 1
    assert "more than 100000 values to convert" in payload["problem"] or "left out" in payload["problem"]


def test_an_encoder_that_returns_the_value_inside_itself_is_cut_off() -> None:
    payload = logged({"v": Money(), "n": 1}, {Money: lambda value: {"self": value}})

    assert payload["v"] == {"self": "…"}
    assert payload["problem"] == "inside itself, cut off, at $.v.self"


def test_an_encoder_runs_once_for_a_value_also_beside_an_odd_one() -> None:
    seen = []
    logged({"deep": [[[Money()]]], "odd": 1j, "more": [1j]}, {Money: lambda value: seen.append(value)})

    assert len(seen) == 1


def test_an_encoder_applies_to_a_payload_its_fields_and_the_context() -> None:
    lines = Lines()
    encoder = ValueEncoder({Money: lambda value: {"amount": value.amount}})
    use_output(lines, encoder=encoder)
    with balog.bound(passing=Money(2)):
        balog.get_logger("a").bind(own=Money(1)).info("x", payload=Money(3), field=Money(4))
    event = json.loads(lines.written[0][1])

    assert event["payload"] == {"amount": 3, "field": {"amount": 4}}
    assert (event["header"]["context"]["own"], event["header"]["context"]["passing"]) == ({"amount": 1}, {"amount": 2})


@pytest.mark.parametrize(
    ("encoders", "reason"),
    [
        ({"Money": str}, "'Money' is not a class; expected {MyType: function}"),
        ({dict: str}, "dict has its own form in JSON; name a class of your own"),
        ({Money: "text"}, "the encoder of Money, 'text', cannot be called"),
    ],
)
def test_wrong_encoders_are_refused(encoders: Any, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        balog.configure("stderr", encoders=encoders)
    assert caught.value.reason == reason


SECRET = "Zq" + "x7" * 20


@pytest.mark.parametrize(
    "value",
    [
        {"password": SECRET},
        Point({"api_key": SECRET}, 1),
        collections.deque([("Authorization", f"Bearer {SECRET}")]),
        collections.deque([(b"x-api-key", SECRET.encode())]),
        f"password={SECRET}".encode(),
        [bytearray(f"password={SECRET}".encode())],
        Order(f"password={SECRET}".encode()),  # type: ignore[arg-type]
        pathlib.PurePosixPath(f"/login?password={SECRET}"),
        {"password": 1, "token": SECRET}.items(),
        ValueError(f"password={SECRET}"),
        numpy.array([f"password={SECRET}"]),
        {pathlib.PurePosixPath("api_key"): SECRET},
        {b"api_key": SECRET},
    ],
)
@pytest.mark.parametrize("odd", [{}, {"odd": 1j}])
def test_secrets_in_converted_values_are_redacted(value: Any, odd: Any) -> None:
    import base64

    for payload in (
        {"v": value},
        {"v": Money(value)},
        {"v": (item for item in [value])},
        {"v": Point(value, 1)},
        {"v": collections.UserDict(a=value)},
    ):
        text = json.dumps(logged({**payload, **odd}, {Money: lambda money: money.amount}))
        assert SECRET not in text
        assert base64.b64encode(SECRET.encode()).decode()[4:-8] not in text
        assert "redacted" in text


@pytest.mark.parametrize("seconds", [0, 1, 1.5, -1, -86400, 86399.999999, 1e9, 0.000001, 86400])
def test_durations_have_one_form(seconds: float) -> None:
    import msgspec

    value = datetime.timedelta(seconds=seconds)
    microseconds = value // datetime.timedelta(microseconds=1)

    assert f'"{timedelta_text(microseconds * 1000)}"'.encode() == msgspec.json.encode(value)


def test_no_library_is_imported_for_its_types() -> None:
    code = (
        "import sys, balog; balog.configure('stderr'); balog.get_logger('a').info('x', payload={'v': object()});"
        "found = {'numpy', 'pandas', 'pyarrow', 'pydantic', 'sqlalchemy'} & set(sys.modules);"
        "sys.exit(str(found) if found else 0)"
    )
    run_python(code)
