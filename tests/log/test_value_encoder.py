"""The encoding of plain values and the general one make the same event, whatever a payload holds."""

import collections
import datetime
import decimal
import enum
import math
import pathlib
import re
import time
import uuid
from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import balog
from balog.common.redaction import Redactor
from balog.common.redaction.names import NameRule, SecretNames
from balog.common.redaction.redactor import default_names
from balog.log import configuration, recorder
from balog.log.context import ProcessContext
from balog.log.recorder import OutputRoute, Recorder
from balog.log.values import value_encoder
from tests.stand_ins.log_outputs import Lines


class Name(str):
    __slots__ = ()


class Colour(str, enum.Enum):
    RED = "red"


class Shape(enum.Enum):
    ROUND = ("round", 1)


class Whole(int):
    pass


class Pairs(dict[str, Any]):
    pass


Login = collections.namedtuple("Login", ["user", "password"])


LINES = Lines()
REDACTOR = Redactor()
CONTEXT = ProcessContext("a")


def logged(payload: Any, bound: dict[str, Any]) -> bytes:
    """Log a payload, and return the line without its id and its time."""
    LINES.written.clear()
    before = configuration.state.swap(Recorder([OutputRoute("lines", LINES)], CONTEXT, redactor=REDACTOR))
    with balog.bound(**bound):
        balog.get_logger("a").info("x", payload=payload)
    configuration.state.swap(before)
    ((_, line),) = LINES.written
    return re.sub(rb'^(.*?"id":")\w+(".*?"timestamp":")[^"]+', rb"\1\2", line)


texts = st.text(max_size=6) | st.sampled_from(
    ["password=hunter22", "token", "Authorization: Bearer abcdefghijklmnop", "null", "{", "[", "--password", "\ud800"]
)
keys = texts | st.sampled_from(["password", "name", "value", "problem", "key", Name("api_key"), Colour.RED])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | texts
    | st.binary(max_size=6)
    | st.sampled_from(
        [
            *(
                b"password=hunter22",
                bytearray(b"token=abcdefgh"),
                memoryview(b"ab"),
                math.nan,
                math.inf,
                1j,
                len,
            ),
            *(Name("x"), Colour.RED, Shape.ROUND, Whole(5), decimal.Decimal("1.5"), uuid.UUID(int=1)),
            *(datetime.datetime(2026, 1, 2), datetime.date(2026, 1, 2), datetime.timedelta(1), datetime.time(1)),
            *(pathlib.PurePosixPath("/x?password=hunter22"), range(3), msgspec.Raw(b'{"a": 1}'), msgspec.Raw(b"{")),
        ]
    )
)
odd_keys = keys | st.integers(0, 2) | st.sampled_from([None, True, b"token", 1.5, (1,), pathlib.PurePosixPath("1")])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.tuples(inner, inner).map(lambda pair: Login(*pair))
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(odd_keys, inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3).map(Pairs)
        | st.lists(st.tuples(keys, inner), max_size=3)
        | st.sets(st.text(max_size=3), max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    payload=st.dictionaries(keys, values, max_size=5) | values,
    bound=st.dictionaries(st.text(max_size=3), values, max_size=2),
)
@example(payload={"a": [1, None, {"b": (1, [2.5])}], "n": None}, bound={})
@example(payload={"a": math.nan, "b": [None, math.inf]}, bound={"c": math.nan})
@example(payload={"v": b"password=hunter22", "w": [b"token=abcdefgh"]}, bound={})
@example(payload={Colour.RED: 1, Name("password"): "x"}, bound={"password": "x"})
def test_a_plain_value_makes_the_event_that_the_general_way_makes(payload: Any, bound: dict[str, Any]) -> None:
    with patch.object(recorder, "encode_plain", lambda value: None):
        expected = logged(payload, bound)

    value_encoder._names.clear()
    for _ in range(2):  # then names are known, and the redactor knows the document
        assert logged(payload, bound) == expected


def test_most_payloads_are_plain() -> None:
    payload = {"a": [1, None, ("x", {"b": 1.5})], "n": None, "at": datetime.date(2026, 1, 2), "d": {}}

    assert value_encoder.encode_plain(payload) == b'{"a":[1,null,["x",{"b":1.5}]],"n":null,"at":"2026-01-02","d":{}}'


def test_a_thousand_new_keys_take_less_than_two_milliseconds() -> None:
    took = []
    for turn in range(15):
        payload = {f"column_{turn}_{number}": number for number in range(1000)}
        before = time.process_time()
        logged(payload, {})
        took.append(time.process_time() - before)

    assert min(took) < 0.002


PARTS = [
    "pass",
    "password",
    "Pass",
    "otp",
    "s3",
    "auth",
    "Token",
    "token",
    "page",
    "key",
    "api",
    "ssn",
    "user",
    "count",
]
names = st.lists(st.sampled_from([*PARTS, "_", "-", ".", " ", "[", "]", "'", "1", "22", "é", "\n"]), max_size=5).map(
    "".join
)


@settings(max_examples=300, deadline=None)
@given(given_names=st.lists(names, min_size=1, max_size=8), extra=st.sampled_from(["xy", "db2", "s3"]))
def test_names_that_are_plainly_harmless_match_no_rule(given_names: list[str], extra: str) -> None:
    rules = Redactor(extra_keys=[extra], extra_suffixes=["z"])._names
    for known in (default_names(), rules, SecretNames([NameRule("suffix", "secret")])):
        assert [name for name in known.plainly_harmless(given_names) if known.rule_of(name) is not None] == []


def test_plain_names_are_found_among_many() -> None:
    many = [*(f"column_{number}" for number in range(50)), "password", "user_token2"]

    assert default_names().plainly_harmless(many) == many[:50]
