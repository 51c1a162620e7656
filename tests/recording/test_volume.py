import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from balog.cardinality import REST, Cardinality
from balog.errors import ConfigError
from balog.recording.volume import Volume, VolumeRule

SCHEMA = Path(__file__).parents[2] / "schemas" / "payload" / "held_back" / "1.0.0.json"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def volume_of(*rules: dict[str, Any], clock: Any = None, **options: Any) -> Volume:
    clock = clock or Clock()
    return Volume(rules, clock=clock, wall=clock, seed=7, **options)


def held(volume: Volume) -> dict[tuple[str, str], tuple[int, int]]:
    payload = volume.take()
    return {
        (one["channel"], one["level"]): (one["sampled"], one["limited"])
        for one in (payload or {"channels": ()})["channels"]
    }


def passed(volume: Volume, channel: str, level: str, times: int) -> int:
    return sum(volume.admit(channel, level) for _ in range(times))


def test_a_sample_passes_about_its_share_and_the_rest_is_counted() -> None:
    volume = volume_of({"channel": "a.*", "sample": 0.1})

    through = passed(volume, "a.b", "INFO", 10_000)

    assert 850 < through < 1150
    assert held(volume) == {("a.b", "INFO"): (10_000 - through, 0)}
    assert volume.take() is None


def test_the_same_seed_gives_the_same_sample_and_the_global_one_is_left_alone() -> None:
    import random

    state = random.getstate()
    one, two = (volume_of({"channel": "*", "sample": 0.5}) for _ in range(2))

    assert [one.admit("a", "INFO") for _ in range(100)] == [two.admit("a", "INFO") for _ in range(100)]
    assert random.getstate() == state


def test_a_rate_limit_lets_a_burst_pass_and_then_so_many_a_second(clock: Clock) -> None:
    volume = volume_of({"channel": "a", "per_second": 2, "burst": 5}, clock=clock)

    assert passed(volume, "a", "INFO", 20) == 5
    clock.now += 1.5
    assert passed(volume, "a", "INFO", 20) == 3
    clock.now += 1000
    assert passed(volume, "a", "INFO", 20) == 5
    assert held(volume) == {("a", "INFO"): (0, 47)}


def test_a_limit_without_a_burst_lets_a_second_s_worth_pass_at_once_and_never_less_than_one(clock: Clock) -> None:
    volume = volume_of({"channel": "a", "per_second": 3}, {"channel": "b", "per_second": 0.1}, clock=clock)

    assert passed(volume, "a", "INFO", 10) == 3
    assert passed(volume, "b", "INFO", 10) == 1
    clock.now += 10
    assert passed(volume, "b", "INFO", 10) == 1


def test_a_thread_that_comes_late_with_its_time_opens_nothing(clock: Clock) -> None:
    volume = volume_of({"channel": "a", "per_second": 1}, clock=clock)
    clock.now += 10
    assert passed(volume, "a", "INFO", 2) == 1
    clock.now -= 5
    assert passed(volume, "a", "INFO", 2) == 0
    clock.now += 5
    assert passed(volume, "a", "INFO", 2) == 0


def test_each_channel_has_its_own_limit_that_its_levels_share(clock: Clock) -> None:
    volume = volume_of({"channel": "*", "per_second": 2}, clock=clock)

    assert [passed(volume, "a", "INFO", 1), passed(volume, "a", "DEBUG", 5), passed(volume, "b", "INFO", 5)] == [
        1,
        1,
        2,
    ]
    assert held(volume) == {("a", "DEBUG"): (0, 4), ("b", "INFO"): (0, 3)}


@pytest.mark.parametrize("level", ["ERROR", "CRITICAL"])
def test_errors_pass_unless_the_rule_says_their_level(level: str) -> None:
    rule = {"channel": "*", "sample": 0.001}

    assert passed(volume_of(rule), "a", level, 500) == 500
    assert passed(volume_of(rule), "a", "WARNING", 500) < 10
    assert passed(volume_of({**rule, "level": level}), "a", level, 500) < 10


def test_a_rule_is_for_levels_up_to_its_own() -> None:
    volume = volume_of({"channel": "*", "sample": 0.001, "level": "DEBUG"})

    assert passed(volume, "a", "DEBUG", 500) < 10
    assert passed(volume, "a", "INFO", 500) == 500


def test_the_first_rule_that_fits_counts() -> None:
    volume = volume_of(
        {"channel": "tap.http.*", "level": "DEBUG", "sample": 0.001},
        {"channel": "tap.http.important", "per_second": 1000},
        {"channel": "tap.*", "per_second": 1},
    )

    assert passed(volume, "tap.http.important", "DEBUG", 300) < 10
    assert passed(volume, "tap.http.important", "INFO", 300) == 300
    assert passed(volume, "tap.x.y", "INFO", 300) == 1
    assert passed(volume, "target", "INFO", 300) == 300


def test_a_sample_is_taken_before_the_limit(clock: Clock) -> None:
    volume = volume_of({"channel": "*", "sample": 0.5, "per_second": 10}, clock=clock)

    assert passed(volume, "a", "INFO", 1000) == 10
    ((sampled, limited),) = held(volume).values()
    assert 400 < sampled < 600
    assert sampled + limited == 990


def test_the_rate_is_what_an_event_stands_for() -> None:
    volume = volume_of({"channel": "a", "sample": 0.25}, {"channel": "b", "per_second": 1})

    assert [volume.rate(channel, "INFO") for channel in "abc"] == [0.25, 1.0, 1.0]
    assert volume.rate("a", "ERROR") == 1.0


def test_a_report_is_due_after_an_interval_and_says_what_was_held_back_since_the_last(clock: Clock) -> None:
    volume = volume_of({"channel": "a", "per_second": 1}, clock=clock, interval=30)
    passed(volume, "a", "INFO", 3)
    passed(volume, "a", "WARNING", 2)
    assert not volume.due()
    clock.now += 30
    assert volume.due()

    payload = volume.take()

    assert payload == {
        "cls_type": "held_back",
        "version": "1.0.0",
        "since": "1970-01-12T13:46:40.000000Z",
        "until": "1970-01-12T13:47:10.000000Z",
        "sampled": 0,
        "limited": 4,
        "channels": [
            {"channel": "a", "level": "INFO", "sampled": 0, "limited": 2},
            {"channel": "a", "level": "WARNING", "sampled": 0, "limited": 2},
        ],
    }
    Draft202012Validator(json.loads(SCHEMA.read_bytes())).validate(payload)
    assert not volume.due()
    passed(volume, "a", "INFO", 2)
    second = volume.take()
    assert second is not None
    assert second["since"] == payload["until"]
    assert second["limited"] == 1


def test_a_quiet_interval_has_no_report(clock: Clock) -> None:
    volume = volume_of({"channel": "a", "per_second": 5}, clock=clock)
    passed(volume, "a", "INFO", 3)
    clock.now += 60

    assert volume.due()
    assert volume.take() is None
    assert not volume.due()


def test_channels_beyond_the_cap_share_a_limit_and_a_count(clock: Clock) -> None:
    volume = volume_of({"channel": "c*", "per_second": 1}, clock=clock, max_channels=3)

    assert [passed(volume, f"c{number}", "INFO", 3) for number in range(10)] == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert passed(volume, "other", "INFO", 3) == 3
    assert held(volume) == {
        ("c0", "INFO"): (0, 2),
        ("c1", "INFO"): (0, 2),
        ("c2", "INFO"): (0, 2),
        (REST, "INFO"): (0, 20),
    }


def test_memory_is_bounded_however_many_channels_come(clock: Clock) -> None:
    volume = volume_of({"channel": "c1*", "per_second": 1}, clock=clock, max_channels=50)
    for number in range(5000):
        volume.admit(f"c{number}", "INFO")
        volume.admit(f"c{number}", "DEBUG")
        volume.rate(f"r{number}", "INFO")

    assert len(volume._channels) <= 50
    assert sum(map(len, volume._limits.values())) <= 5 * 51
    assert len(volume._buckets) <= 51
    assert len(held(volume)) <= 5 * 51


def test_channels_that_fell_silent_make_room_and_busy_ones_keep_their_limit(clock: Clock) -> None:
    volume = volume_of({"channel": "*", "per_second": 0.001}, clock=clock, max_channels=2)
    assert [passed(volume, channel, "INFO", 1) for channel in ("old", "busy")] == [1, 1]
    volume.take()
    passed(volume, "busy", "INFO", 1)
    volume.take()

    assert passed(volume, "busy", "INFO", 1) == 0
    assert passed(volume, "new", "INFO", 2) == 1
    assert set(held(volume)) == {("busy", "INFO"), ("new", "INFO")}


def test_threads_share_a_limit_and_lose_no_count() -> None:
    volume = volume_of({"channel": "a", "per_second": 1, "burst": 500}, {"channel": "b*", "sample": 0.5})
    through: Counter[str] = Counter()
    reports: list[dict[str, Any] | None] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def hammer(into: Counter[str]) -> None:
        for turn in range(3000):
            into["a"] += volume.admit("a", "INFO")
            into["b"] += volume.admit(f"b{turn % 7}", "DEBUG")
            if turn % 100 == 0:
                reports.append(volume.take())

    parts: list[Counter[str]] = [Counter() for _ in range(4)]
    threads = [threading.Thread(target=hammer, args=(part,)) for part in parts]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for part in parts:
        through.update(part)
    reports.append(volume.take())

    assert through["a"] == 500
    assert sum(one["limited"] for one in reports if one) == 12_000 - 500
    assert sum(one["sampled"] for one in reports if one) == 12_000 - through["b"]


def in_a_child(work: Any) -> Any:
    """Give what ``work`` returns in a forked child."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)  # a child that hangs fails the test
            with os.fdopen(write_end, "w") as out:
                out.write(json.dumps(work()))
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def test_a_forked_child_reports_only_its_own() -> None:
    volume = volume_of({"channel": "a", "per_second": 1})
    passed(volume, "a", "INFO", 10)

    def work() -> Any:
        first = volume.take()
        passed(volume, "a", "INFO", 3)
        return [first, volume.take()]

    first, second = in_a_child(work)
    assert first is None
    assert second["limited"] == 2
    assert held(volume) == {("a", "INFO"): (0, 9)}


def test_a_forked_child_draws_another_sample() -> None:
    volume = Volume([{"channel": "a", "sample": 0.5}])

    def draw() -> list[bool]:
        return [volume.admit("a", "INFO") for _ in range(200)]

    one, two = in_a_child(draw), in_a_child(draw)
    assert len({tuple(one), tuple(two), tuple(draw())}) == 3


def test_a_fork_while_another_thread_holds_the_lock_does_not_hang_the_child() -> None:
    volume = volume_of({"channel": "a", "per_second": 1})
    tags = Cardinality(1)
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with volume._lock, tags._lock:
            locked.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait()
    try:
        answer = in_a_child(lambda: [volume.admit("a", "INFO"), dict(tags.admit("m", {"a": 1}))])
    finally:
        done.set()
        thread.join()
    assert answer == [True, {"a": 1}]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "$[1]: object missing required field `channel`"),
        ({"channel": "a"}, "$[1]: holds nothing back: set sample below 1, or per_second"),
        ({"channel": ""}, "$[1].channel: expected `str` of length >= 1"),
        ({"channel": "a", "sample": 0}, "$[1].sample: expected `float` > 0.0"),
        ({"channel": "a", "sample": 1.5}, "$[1].sample: expected `float` <= 1.0"),
        ({"channel": "a", "per_second": -1}, "$[1].per_second: expected `float` > 0.0"),
        ({"channel": "a", "per_second": float("nan")}, "$[1].per_second: expected `float`"),
        ({"channel": "a", "sample": 0.5, "burst": 5}, "$[1]: burst needs per_second"),
        ({"channel": "a", "per_second": 5, "burst": 0.5}, "$[1].burst: expected `float` >= 1.0"),
        ({"channel": "a", "sample": 0.5, "level": "info"}, "$[1].level: invalid enum value 'info'"),
        ({"channel": "a", "rate": 0.5}, "$[1]: object contains unknown field `rate`"),
        ("a", "$[1]: expected `object`, got `str`"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_place(rule: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Volume([{"channel": "b", "sample": 0.5}, rule])

    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("interval", [0, -1, float("nan"), float("inf")])
def test_a_wrong_interval_is_refused(interval: float) -> None:
    with pytest.raises(ConfigError, match=r"interval.*no number of seconds above 0"):
        Volume([], interval)


def test_without_rules_everything_passes() -> None:
    volume = Volume([])

    assert passed(volume, "a", "DEBUG", 100) == 100
    assert volume.take() is None


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from("abcd"), st.sampled_from(["DEBUG", "INFO", "ERROR"]), st.sampled_from([0, 0, 0.4, 3])
        ),
        max_size=60,
    ),
    room=st.integers(1, 5),
)
def test_what_passes_and_what_is_reported_is_everything(steps: list[tuple[str, str, float]], room: int) -> None:
    clock = Clock()
    rules = [VolumeRule(channel="[ab]", sample=0.5, per_second=1), VolumeRule(channel="c", per_second=2, level="ERROR")]
    volume = Volume(rules, clock=clock, wall=clock, seed=1, max_channels=room)
    through = reported = 0
    for channel, level, wait in steps:
        clock.now += wait
        through += volume.admit(channel, level)
        if wait == 3 and (payload := volume.take()):
            reported += payload["sampled"] + payload["limited"]
    if payload := volume.take():
        reported += payload["sampled"] + payload["limited"]

    assert through + reported == len(steps)
