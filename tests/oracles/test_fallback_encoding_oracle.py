"""Whatever odd values stand in a payload, every other value of it is what a plain JSON round trip makes of it."""

import collections
import dataclasses
import enum
import json
import math
import random
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

import balog
from balog.common.redaction import Redactor
from balog.log import configuration
from balog.log.context import ProcessContext
from balog.log.outputs import LogOutput
from balog.log.recorder import OutputRoute, Recorder
from tests.oracles.effort import seeds

ODD = "an odd value stood here"


@dataclasses.dataclass
class Order:
    number: Any
    rest: Any


class Line(msgspec.Struct, tag_field="kind", tag="line", rename="camel"):
    unit_price: Any
    rest: Any


class Raising:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def odd(random_: random.Random) -> Any:
    return random_.choice(
        [
            *(1j, object(), Raising(), len, slice(1)),
            *(math.nan, math.inf, -math.inf, "a\ud800b", 10**5000, msgspec.Raw(b"{oops"), threading_lock),
        ]
    )


threading_lock = __import__("threading").Lock()


def text(random_: random.Random) -> str:
    letters = 'ab "\\/\n\x00é日😀{}[],:$.…'
    return "".join(random_.choices(letters, k=random_.choice([0, 1, 3, 10, 300])))


def converted(random_: random.Random) -> tuple[Any, Any]:
    """Return a value of a type that JSON does not have, and its form."""
    texts = [text(random_) for _ in range(3)]
    return random_.choice(
        [
            (Path("/x"), "/x"),
            (range(3), [0, 1, 2]),
            (collections.deque(texts), texts),
            ((one for one in texts), texts),
            (set(range(3)), [0, 1, 2]),
            (Pair(*texts[:2]), {"left": texts[0], "right": texts[1]}),
            (Colour.RED, "red"),
            (dict.fromkeys(map(str, range(3))).keys(), ["0", "1", "2"]),
        ]
    )


class Colour(enum.Enum):
    RED = "red"


Pair = collections.namedtuple("Pair", ["left", "right"])


def scalar(random_: random.Random) -> Any:
    return random_.choice(
        [None, True, False, 0, -1, 2**63, -(2**70), 1.5, -0.0, 1e300, 5e-324, text(random_), text(random_), "1", "…"]
    )


def build(random_: random.Random, depth: int, planted: list[int]) -> tuple[Any, Any]:
    """Return a value with odd ones in it, and what json makes of it, with ODD at their places."""
    turn = random_.random()
    if turn < 0.08:
        planted.append(1)
        return odd(random_), ODD
    if turn < 0.14:
        return converted(random_)
    if depth == 0 or turn < 0.4:
        value = scalar(random_)
        return value, value
    if turn < 0.7:
        names = {text(random_) + str(number) for number in range(random_.randrange(5))}
        parts = {name: build(random_, depth - 1, planted) for name in sorted(names)}
        value = {name: part for name, (part, _) in parts.items()}
        expected = {name: part for name, (_, part) in parts.items()}
        return random_.choice([value, value, collections.OrderedDict(value), MappingProxyType(value)]), expected
    if turn < 0.9:
        items = [build(random_, depth - 1, planted) for _ in range(random_.choice([0, 1, 3, 30]))]
        given = [item for item, _ in items]
        return random_.choice([given, tuple(given)]), [item for _, item in items]
    (first, one), (second, two) = build(random_, depth - 1, planted), build(random_, depth - 1, planted)
    if turn < 0.95:
        return Order(first, second), {"number": one, "rest": two}
    return Line(first, second), {"kind": "line", "unitPrice": one, "rest": two}


def same(found: Any, expected: Any) -> bool:
    """Compare as JSON does, where any text or null may stand for an odd value."""
    if isinstance(expected, str) and expected == ODD:
        return found is None or isinstance(found, str)
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(expected)
            and all(same(found[name], part) for name, part in expected.items())
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    return type(found) is type(expected) and found == expected


class Lines(LogOutput):
    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, level: str, event: bytes) -> None:
        self.lines.append(event)


def logged(payload: Any) -> Any:
    """Log a payload, and read the line with Python's own json."""
    lines = Lines()
    recorder = Recorder([OutputRoute("lines", lines)], ProcessContext("app"), redactor=Redactor())
    before = configuration.state.swap(recorder)
    try:
        balog.get_logger("a").info("x", payload=payload)
    finally:
        configuration.state.swap(before)
    (line,) = lines.lines
    assert b"\n" not in line
    return json.loads(line)["payload"]


def changes(problem: str) -> int:
    """Count the changes that a problem's text counts."""
    more = re.findall(r", at \$\S* and (\d+) more(?:;|$)", problem)
    return problem.count(", at $") + sum(map(int, more))


@pytest.mark.parametrize("seed", seeds(150))
def test_an_odd_value_costs_itself_alone(seed: int) -> None:
    random_ = random.Random(seed)
    planted: list[int] = []
    parts = {f"part{number}": build(random_, random_.randrange(6), planted) for number in range(4)}
    value, expected = {}, {}
    for name, (part, wanted) in parts.items():
        value[name], expected[name] = part, wanted
    found = logged(value)
    problem = found.pop("problem", "")

    assert same(found, expected)
    assert bool(problem) == bool(planted)


@pytest.mark.parametrize("seed", seeds(6))
def test_long_lists_long_texts_and_deep_ones_stay_whole_beside_odd_values(seed: int) -> None:
    random_ = random.Random(seed)
    deep: Any = "ground"
    for _ in range(random_.randrange(150, 190)):
        deep = random_.choice([[deep], {"in": deep}])
    payload = {
        "rows": [{"n": n, "text": text(random_)} for n in range(random_.randrange(1000, 4000))],
        "numbers": list(range(random_.randrange(10_000, 60_000))),
        "text": "é" * random_.randrange(70_000, 400_000),
        "deep": deep,
    }
    names = list(payload)
    planted = [random_.randrange(len(payload["rows"])) for _ in range(3)]
    for row in planted:
        payload["rows"][row]["odd"] = object()
    random_.shuffle(names)
    found = logged({name: payload[name] for name in names})
    problem = found.pop("problem")
    for row in set(planted):
        assert found["rows"][row].pop("odd")
        del payload["rows"][row]["odd"]

    assert found == payload
    assert changes(problem) == len(set(planted))
    assert f"$.rows[{min(planted)}].odd" in problem


@pytest.mark.parametrize("seed", seeds(6))
def test_what_is_cut_of_too_much_is_counted_exactly(seed: int) -> None:
    random_ = random.Random(seed)
    payload: dict[str, Any] = {"small": {"a": [1, 2, {"b": "c"}]}, "odd": object()}
    for number in range(random_.randrange(2, 6)):
        payload[f"list{number}"] = [random_.choice([n, str(n)]) for n in range(random_.randrange(100_000, 300_000))]
        payload[f"text{number}"] = random_.choice("aé\x00") * random_.randrange(500_000, 2_000_000)
    found = logged(payload)
    problem = found["problem"]

    assert found["small"] == payload["small"]
    assert len(json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()) < 3 * 2**20 + 10_000
    cut = dict(re.findall(r"(\d+ of \d+) (?:items|characters) left out, at \$\.(\w+)", problem))
    by_name = {name: counts for counts, name in cut.items()}
    for name, part in payload.items():
        if isinstance(part, list):
            kept = len(found[name])
            assert found[name] == part[:kept]
        elif isinstance(part, str):
            whole = found[name] == part
            kept = len(part) if whole else len(found[name]) - 1
            assert found[name] == part or found[name] == part[:kept] + "…"
        else:
            continue
        wanted = f"{len(part) - kept} of {len(part)}"
        assert by_name.get(name) == (None if kept == len(part) else wanted)
