"""The page on values: each row of its tables is logged, and its block runs."""

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import pathlib
import re
import sys
import types
import uuid
import zoneinfo
from typing import Any, NamedTuple

import attrs
import msgspec
import numpy
import pandas
import pyarrow
import pydantic
import pydantic.v1
import pytest
import sqlalchemy

import balog
from balog.event import encode
from balog.log import configuration
from balog.log.context import ProcessContext
from balog.log.recorder import Recorder
from balog.testing import capture_events
from tests.documentation import docs_page
from tests.programs import run_program

PAGE = docs_page("values.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| `(?P<value>.+?)`(?: \([^|]*\))? \| `(?P<json>[^|]+)` \|(?: `(?P<problem>[^|`]+)` \|)?$", re.MULTILINE
)
MORE = r"""
| `None` | `null` |
| `True` | `true` |
| `1.5` | `1.5` |
| `"é"` | `"é"` |
| `bytearray(b"ab")` | `"YWI="` |
| `memoryview(b"ab")` | `"YWI="` |
| `decimal.Decimal("NaN")` | `"NaN"` |
| `datetime.time(3, 4)` | `"03:04:00"` |
| `zoneinfo.ZoneInfo("Europe/Berlin")` | `"Europe/Berlin"` |
| `ipaddress.ip_network("fe80::/64")` | `"fe80::/64"` |
| `collections.deque([1, 2])` | `[1, 2]` |
| `range(3)` | `[0, 1, 2]` |
| `array.array("i", [1, 2])` | `[1, 2]` |
| `{"a": 1}.values()` | `[1]` |
| `{"a": 1}.items()` | `[["a", 1]]` |
| `types.MappingProxyType({"a": 1})` | `{"a": 1}` |
| `collections.ChainMap({"a": 1})` | `{"a": 1}` |
| `types.SimpleNamespace(a=1)` | `{"a": 1}` |
| `numpy.float32(1.5)` | `1.5` |
| `numpy.bool_(True)` | `true` |
| `numpy.datetime64("NaT")` | `null` |
| `numpy.array(5)` | `5` |
| `pandas.NaT` | `null` |
| `pyarrow.scalar(1)` | `1` |
| `pyarrow.array([1, None])` | `[1, null]` |
| `OldLogin(user="bob", code="pw")` (the same in pydantic 1) | `{"user": "bob", "code": "**********"}` |
| `{Colour.RED: 1}` | `{"red": 1}` |
| `{datetime.date(2026, 1, 2): 1}` | `{"2026-01-02": 1}` |
"""
"""Rows like those of the page, which has one of each kind."""
ROWS = [(found["value"], found["json"], found["problem"]) for found in ROW.finditer(PAGE + MORE)]


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Order:
    number: int
    file: Any


class Sale(msgspec.Struct):
    amount: int


@attrs.define
class Shop:
    name: str


class Login(pydantic.BaseModel):
    user: str
    code: pydantic.SecretStr


class OldLogin(pydantic.v1.BaseModel):
    user: str
    code: pydantic.v1.SecretStr


NAMES = {
    **{module.__name__: module for module in (array, collections, datetime, decimal, fractions, ipaddress, pathlib)},
    **{module.__name__: module for module in (re, types, uuid, zoneinfo, numpy, pandas, pyarrow)},
    **{kind.__name__: kind for kind in (Colour, Point, Order, Sale, Shop, Login, OldLogin)},
}


def logged(value: Any) -> dict[str, Any]:
    with capture_events(strict=False) as events:
        balog.get_logger("docs").info("x", payload={"value": value})
    payload: dict[str, Any] = json.loads(encode(events.one()))["payload"]
    return payload


def value_of(expression: str) -> Any:
    if expression == "row":
        with sqlalchemy.create_engine("sqlite://").connect() as connection:
            return connection.execute(sqlalchemy.text("select 1 as n, 'x' as name")).one()
    return eval(expression, NAMES)


def test_all_rows_of_the_page_are_found() -> None:
    lines = [line for line in (PAGE + MORE).splitlines() if line.startswith("| `")]
    assert len(ROWS) == len(lines) > 70


@pytest.mark.parametrize(("expression", "expected", "problem"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_page_is_what_an_event_holds(expression: str, expected: str, problem: str | None) -> None:
    payload = logged(value_of(expression))

    assert payload["value"] == json.loads(expected)
    assert payload.get("problem", "").partition(", at $")[0] == (problem or "")


@pytest.mark.parametrize(
    ("value", "rest"),
    [
        (range(1500), "500 of 1500"),
        ((n for n in range(1500)), "all further"),
        (numpy.arange(1500), "500 of 1500"),
        (pandas.Series(range(1500)), "500 of 1500"),
        (pyarrow.array(range(1500)), "500 of 1500"),
    ],
    ids=["range", "generator", "numpy", "pandas", "pyarrow"],
)
def test_the_first_thousand_values_of_a_long_sequence_are_written(value: Any, rest: str) -> None:
    payload = logged(value)

    assert payload == {"value": list(range(1000)), "problem": f"{rest} items left out, at $.value"}


def test_a_generator_is_read_once_and_not_if_the_level_is_off() -> None:
    rows = (n for n in range(3))
    before = configuration.state.swap(Recorder([], ProcessContext("docs")))
    try:
        balog.get_logger("docs").debug("x", payload={"rows": rows})
    finally:
        configuration.state.swap(before)
    assert logged([rows, 1j])["value"] == [[0, 1, 2], "1j"]
    assert list(rows) == []


def test_the_block_of_the_page_runs(tmp_path: pathlib.Path) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    script = tmp_path / "shop.py"
    script.write_text(block, encoding="utf-8")
    run_program(sys.executable, script)
