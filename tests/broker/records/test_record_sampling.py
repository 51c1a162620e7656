"""Sampling and throttling."""

import json

import pytest

from balog.broker.records.sampling import Throttle
from tests.broker.records.editing import build, record, schema


def passing(rule, records, stream="users", keys=None):
    editor = build({"stream": "*", **rule})
    if keys is not None:
        editor.edit("SCHEMA", schema({}, keys, stream))
    return [data for data in records if editor.edit("RECORD", record(data, stream)) is None]


ROWS = [{"id": number, "name": f"n{number % 7}"} for number in range(4000)]


@pytest.mark.parametrize("rule", [{"rate": 0.25}, {"rate": 0.25, "by": ["id"]}, {"rate": 0.25, "seed": 1}])
def test_about_the_part_that_was_asked_for_stays(rule):
    assert 850 < len(passing({"sample": rule}, ROWS, keys=["id"])) < 1150


@pytest.mark.parametrize(("rate", "count"), [(0, 0), (1, 4000)])
def test_none_and_all_are_exact(rate, count):
    assert len(passing({"sample": {"rate": rate}}, ROWS)) == count


def test_the_same_record_is_always_in_or_always_out():
    rule = {"sample": {"rate": 0.5}}
    once = passing(rule, ROWS[:300], keys=["id"])
    assert passing(rule, ROWS[299::-1], keys=["id"])[::-1] == once
    later = [{**data, "name": "another"} for data in ROWS[:300]]
    assert [data["id"] for data in passing(rule, later, keys=["id"])] == [data["id"] for data in once]


def test_streams_that_share_a_value_stay_together():
    users = passing({"sample": {"rate": 0.5}}, ROWS[:300], keys=["id"])
    orders = [{"user": {"id": number}} for number in range(300)]
    chosen = passing({"sample": {"rate": 0.5, "by": ["user.id"]}}, orders, "orders")
    assert [data["user"]["id"] for data in chosen] == [data["id"] for data in users]


def test_a_key_is_the_same_in_any_spelling():
    for letter in "abcdefghijkl":
        rows = [f'{{"id": "\\u{ord(letter):04x}/"}}', f'{{"id": "{letter}\\/"}}', f'{{"id":"{letter}/"}}']
        assert len(passing({"sample": {"rate": 0.5, "by": ["id"]}}, rows)) in (0, 3)


def test_without_keys_all_of_the_record_decides():
    rule = {"sample": {"rate": 0.5}}
    assert passing(rule, ROWS[:100]) == passing(rule, ROWS[:100], keys=[])
    assert 20 < len(passing(rule, ROWS[:100])) < 80


def test_a_seed_gives_the_same_chance_each_run_and_another_to_each_stream():
    rule = {"sample": {"rate": 0.5, "seed": 7}}
    assert passing(rule, ROWS[:200]) == passing(rule, ROWS[:200])
    assert passing(rule, ROWS[:200]) != passing(rule, ROWS[:200], "orders")


class Clock:
    def __init__(self):
        self.now = 100.0
        self.slept = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept += seconds
        self.now += seconds


@pytest.mark.parametrize("rate", [0.5, 10, 5000])
def test_a_throttle_lets_so_many_pass_a_second(rate):
    clock = Clock()
    throttle = Throttle(rate, clock.sleep, clock)
    for _ in range(int(rate * 10)):
        throttle.wait()
    assert clock.slept == pytest.approx(10 - 1 / rate, abs=0.05)


def test_time_that_was_not_used_is_caught_up_with_for_a_moment_only():
    clock = Clock()
    throttle = Throttle(100, clock.sleep, clock)
    clock.now += 60
    for _ in range(100):
        throttle.wait()
    assert clock.slept == pytest.approx(0.9, abs=0.05)


def test_a_sleep_that_comes_back_early_holds_nothing_up():
    clock, slept = Clock(), []
    throttle = Throttle(0.001, slept.append, clock)
    throttle.wait()
    throttle.wait()
    assert slept == [pytest.approx(1000)]


def test_a_throttled_record_is_none_the_worse():
    slept = []
    editor = build({"stream": "users", "throttle": 0.01, "drop": ["b"]}, sleep=slept.append)
    for _ in range(2):
        ((_, line),) = editor.edit("RECORD", record({"a": 1, "b": 2}))
        assert json.loads(line)["record"] == {"a": 1}
    assert len(slept) == 1
