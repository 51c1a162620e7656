"""Sources that go round in a circle, and those that only look like it."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap import Tap
from balog.tap.syncing.repeats import RepeatDetector
from tests.tap.syncs import sync


def _look(items: Any) -> tuple[int, list[str]]:
    """Look at items as the loop does; give how many there were, and the warnings."""
    warnings: list[str] = []
    repeats, number = RepeatDetector(warnings.append), 0
    for number, item in enumerate(items, 1):
        if item == repeats.anchor or number == repeats.power or repeats.is_following:
            repeats.check(item, number)
    return number, warnings


def _page(*ids: int) -> list[dict[str, int]]:
    return [{"id": id} for id in ids]


@given(before=st.integers(0, 50), length=st.integers(1, 40))
def test_a_circle_is_found_wherever_it_begins(before: int, length: int) -> None:
    most = 90 * length + 4 * before
    circle = ({"id": 1000 + number % length} for number in range(most))

    number, warnings = _look(itertools.chain(_page(*range(before)), circle))

    assert number == before + most
    assert f"came 20 times before, {length} items apart" in warnings[0]


@given(st.lists(st.integers(0, 3), max_size=200))
def test_what_comes_less_than_twenty_times_is_none(ids: list[int]) -> None:
    groups = [list(group) for _, group in itertools.groupby(ids)]
    items = [{"id": id, "at": at} for at, group in enumerate(groups) for id in group[:20]]

    assert _look(items) == (len(items), [])


def test_one_record_that_comes_with_each_page_is_none() -> None:
    pages = ([{"id": 7}, {"id": 1000 + page}, {"id": 5000 + page}] for page in range(1000))

    assert _look(itertools.chain.from_iterable(pages)) == (3000, [])


def test_one_object_that_is_filled_anew_is_none() -> None:
    def source() -> Any:
        row: dict[str, int] = {}
        for number in range(1000):
            row["id"] = number
            yield row

    assert _look(source()) == (1000, [])


@pytest.mark.parametrize("as_pages", [True, False])
def test_a_source_that_repeats_is_warned_about_and_goes_on(as_pages: bool, events: Any) -> None:
    tap = Tap("tap-cool")

    @tap.stream("circle", key_properties=["id"])
    def circle() -> Any:
        for _ in range(1000):
            if as_pages:
                yield _page(1, 2, 3)
            else:
                yield from _page(1, 2, 3)

    ran = sync(tap)

    assert (ran.code, len(ran.records())) == (0, 3000)
    warnings = [event for event in events if event.level == "WARNING"]
    assert "The source returns the same again and again" in warnings[0].payload["message"]
    assert len(warnings) <= 10, "it comes again whenever twice as many records have come"


@pytest.mark.parametrize("method", ["LOG_BASED", "FULL_TABLE"])
def test_a_row_that_is_toggled_for_long_arrives_each_time(method: Any) -> None:
    tap = Tap("tap-cool")

    @tap.stream("switches", key_properties=["id"], replication_method=method)
    def switches() -> Any:
        for number in range(1000):
            yield {"id": 1, "name": "on" if number % 2 else "off"}

    ran = sync(tap)

    assert (ran.code, ran.failures) == (0, [])
    assert [record["name"] for record in ran.records()] == ["off", "on"] * 500


def test_records_that_nothing_identifies_may_be_the_same() -> None:
    tap = Tap("tap-cool")
    tap.stream("pings")(lambda: ({"id": 1} for _ in range(500)))

    assert len(sync(tap).records()) == 500


def test_what_cannot_be_compared_is_let_through() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("the truth value of an array is ambiguous")

        __hash__ = None  # type: ignore[assignment]

    tap = Tap("tap-cool")
    tap.stream("contacts", key_properties=["id"])(lambda: ({"id": 1, "hidden": Odd()} for _ in range(5)))

    assert len(sync(tap).records()) == 5
