"""Assertions about the messages of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.singer.assertions import TapAssertions
from tests.waiting import Clock

DAYS = [f"2026-01-{day:02}T00:00:00Z" for day in range(1, 10)]


def schema(stream: str = "s", key: str | None = "at") -> dict[str, Any]:
    return {"type": "SCHEMA", "stream": stream, "schema": {}, "bookmark_properties": [key] if key else []}


def record(at: Any, stream: str = "s") -> dict[str, Any]:
    return {"type": "RECORD", "stream": stream, "record": {"id": 1, "at": at}}


def state(at: Any) -> dict[str, Any]:
    return {"type": "STATE", "value": {"bookmarks": {"s": {"at": at}}}}


def problems(
    *messages: dict[str, Any], seconds: float = 1.0, is_complete: bool = True, **settings: Any
) -> list[tuple[str, str]]:
    clock = Clock(0.0)
    assertions = TapAssertions(clock)
    assertions.begin(**settings)
    assertions.see(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    clock.now = seconds
    return assertions.finish(is_complete=is_complete)


class TestRecords:
    def test_one_before_its_schema(self) -> None:
        assert problems(record(DAYS[0])) == [("s", "a record comes before its SCHEMA")]

    def test_one_that_is_older_than_a_state_before_it(self) -> None:
        found = problems(schema(), record(DAYS[2]), state(DAYS[2]), record(DAYS[1]), record(DAYS[0]))
        assert found == [("s", f"a record of {DAYS[1]!r} comes after a STATE with the bookmark {DAYS[2]!r}")]

    def test_the_bookmark_of_before_may_be_later_than_a_record_as_with_a_lookback(self) -> None:
        assert problems(state(DAYS[3]), schema(), record(DAYS[1]), record(DAYS[4]), state(DAYS[4])) == []

    @given(st.lists(st.sampled_from(DAYS)))
    def test_an_order_is_broken_if_and_only_if_the_values_are_not_sorted(self, days: list[str]) -> None:
        found = problems(schema(key=None), *map(record, days), ordered={"s": "at"})
        assert bool(found) == (days != sorted(days))

    def test_other_streams_have_no_order(self) -> None:
        assert problems(schema(key=None), record(DAYS[1]), record(DAYS[0]), ordered={"t": "at"}) == []


class TestBookmarks:
    def test_one_goes_back(self) -> None:
        found = problems(state(DAYS[3]), schema(), state(DAYS[2]), is_complete=False)
        assert found == [("s", f"the bookmark goes back from {DAYS[3]!r} to {DAYS[2]!r}")]

    def test_one_disappears(self) -> None:
        found = problems(state(DAYS[3]), schema(), {"type": "STATE", "value": {"bookmarks": {}}}, is_complete=False)
        assert found == [("s", f"the bookmark goes back from {DAYS[3]!r} to None")]

    @pytest.mark.parametrize(("is_complete", "count"), [(True, 1), (False, 0)])
    def test_one_is_behind_the_records_of_a_complete_run(self, is_complete: bool, count: int) -> None:
        found = problems(schema(), record(DAYS[1]), record(DAYS[2]), state(DAYS[1]), is_complete=is_complete)
        assert found == [("s", f"the bookmark {DAYS[1]!r} is behind the record {DAYS[2]!r}")][:count]

    @pytest.mark.parametrize(
        ("end", "seconds", "count"),
        [
            ("2026-01-01T00:00:50Z", 100.0, 1),
            ("2026-01-01T00:01:50Z", 100.0, 0),
            ("2026-01-01T00:00:10Z", 30.0, 0),
            (DAYS[0], 100.0, 0),
        ],
    )
    def test_one_advances_by_less_than_the_run_takes(self, end: str, seconds: float, count: int) -> None:
        found = problems(state(DAYS[0]), schema(), record(end), state(end), seconds=seconds)
        assert found == [("s", "the bookmark advanced by 50 s in a run of 100 s")][:count]

    def test_one_that_is_no_value_of_a_property_is_not_compared(self) -> None:
        assert problems(schema(), record(DAYS[3]), state(DAYS[1]), record(DAYS[0]), own_bookmarks=["s"]) == []


def test_problems_of_several_runs_are_kept_and_each_run_has_its_own_state() -> None:
    assertions = TapAssertions()
    for _ in range(2):
        assertions.begin()
        assertions.see(json.dumps(record(1)).encode() + b"\n")
        assertions.finish(is_complete=True)
    assert assertions.problems == [("s", "a record comes before its SCHEMA")] * 2
