"""Conversions of values: what their results and their errors become."""

import collections
import dataclasses
import datetime
import json
import pathlib
from typing import Any, NamedTuple

import numpy
import pytest

import balog
from balog.common.redaction import Redactor
from balog.log.values.numeric_values import timedelta_text
from tests.stand_ins.log_outputs import Lines, recording, use_output
from tests.stand_ins.programs import run_python


class Money:
    """Converted as a pydantic model is: by its method."""

    def __init__(self, dumped: Any = 5, seen: list[object] | None = None) -> None:
        self.dumped, self.seen = dumped, seen

    def model_dump(self, **options: object) -> Any:
        if self.seen is not None:
            self.seen.append(self)
        return self.dumped


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Order:
    number: int


def logged(payload: Any) -> dict[str, Any]:
    """Log a payload, and read the line with Python's own json."""
    lines = Lines()
    with recording(lines, redactor=Redactor()):
        balog.get_logger("a").info("x", payload=payload)
    ((_, line),) = lines.written
    data: dict[str, Any] = json.loads(line)["payload"]
    return data


def test_a_result_is_encoded_again() -> None:
    result = {"at": pathlib.Path("/x"), "inner": [Order(1)], "point": Point(1, b"ab")}

    assert logged({"v": Money(result)})["v"] == {
        "at": "/x",
        "inner": [{"number": 1}],
        "point": {"x": 1, "y": "YWI="},
    }


@pytest.mark.parametrize(("error", "named"), [(KeyError("no"), "KeyError"), (GeneratorExit(), "GeneratorExit")])
def test_one_that_raises_costs_its_value_only(error: BaseException, named: str) -> None:
    class Failing:
        def model_dump(self, **options: object) -> Any:
            raise error

    payload = logged({"v": Failing(), "path": pathlib.Path("/x"), "n": [1, None]})

    assert payload == {
        "v": "<Failing>",
        "path": "/x",
        "n": [1, None],
        "problem": f"Failing cannot be read: {named}, at $.v",
    }


def test_one_that_returns_such_a_value_is_stopped() -> None:
    money = Money()
    money.dumped = money
    payload = logged({"v": money, "n": 1})

    assert payload["n"] == 1
    assert payload["problem"] == "Money was converted 20 times, its repr is written, at $.v"


def test_one_whose_results_grow_is_cut_off() -> None:
    class Growing:
        def model_dump(self, **options: object) -> Any:
            return [Growing(), Growing()]

    payload = logged({"v": Growing(), "n": 1})

    assert payload["n"] == 1
    assert "more than 100000 values to convert" in payload["problem"] or "left out" in payload["problem"]


def test_one_that_returns_the_value_inside_itself_is_cut_off() -> None:
    money = Money()
    money.dumped = {"self": money}
    payload = logged({"v": money, "n": 1})

    assert payload["v"] == {"self": "…"}
    assert payload["problem"] == "inside itself, cut off, at $.v.self"


def test_a_value_is_converted_once_also_beside_an_odd_one() -> None:
    seen: list[object] = []
    logged({"deep": [[[Money(seen=seen)]]], "odd": 1j, "more": [1j]})

    assert len(seen) == 1


def test_a_payload_its_fields_and_the_context_are_converted() -> None:
    lines = Lines()
    use_output(lines)
    with balog.bound(passing=Money({"amount": 2})):
        balog.get_logger("a").bind(own=Money({"amount": 1})).info(
            "x", payload=Money({"amount": 3}), field=Money({"amount": 4})
        )
    event = lines.take()

    assert event.payload == {"amount": 3, "field": {"amount": 4}}
    assert (event.header.context["own"], event.header.context["passing"]) == ({"amount": 1}, {"amount": 2})


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
        text = json.dumps(logged({**payload, **odd}))
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
