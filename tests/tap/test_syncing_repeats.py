"""Sources that go round in a circle, and those that only look like it."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap import Tap
from balog.tap.errors import SourceError
from balog.tap.syncing.repeating import Repeats
from tests.tap.syncs import sync


def _look(items: Any) -> int:
    """Look at items as the loop does; give how many there were."""
    repeats, number = Repeats(), 0
    for number, item in enumerate(items, 1):
        if item == repeats.anchor or number == repeats.power or repeats.is_following:
            repeats.look(item, number)
    return number


def _page(*ids: int) -> list[dict[str, int]]:
    return [{"id": id} for id in ids]


@given(before=st.integers(0, 50), length=st.integers(1, 40))
def test_a_circle_is_found_wherever_it_begins(before: int, length: int) -> None:
    seen = itertools.count()

    def source() -> Any:
        yield from _page(*range(before))
        while True:
            for number in range(length):
                next(seen)
                yield {"id": 1000 + number}

    with pytest.raises(SourceError, match=f"came 20 times before, {length} items apart"):
        _look(source())
    assert next(seen) <= 90 * length + 4 * before


@given(st.lists(st.integers(0, 3), max_size=200))
def test_what_comes_less_than_twenty_times_is_none(ids: list[int]) -> None:
    groups = [list(group) for _, group in itertools.groupby(ids)]
    items = [{"id": id, "at": at} for at, group in enumerate(groups) for id in group[:20]]

    assert _look(items) == len(items)


def test_one_record_that_comes_with_each_page_is_none() -> None:
    pages = ([{"id": 7}, {"id": 1000 + page}, {"id": 5000 + page}] for page in range(1000))

    assert _look(itertools.chain.from_iterable(pages)) == 3000


def test_one_object_that_is_filled_anew_is_none() -> None:
    def source() -> Any:
        row: dict[str, int] = {}
        for number in range(1000):
            row["id"] = number
            yield row

    assert _look(source()) == 1000


@pytest.mark.parametrize("as_pages", [True, False])
def test_a_page_for_ever_fails_its_stream_and_the_next_one_runs(as_pages: bool) -> None:
    tap = Tap("tap-cool")

    @tap.stream("stuck", key_properties=["id"])
    def stuck() -> Any:
        while True:
            if as_pages:
                yield _page(1, 2, 3)
            else:
                yield from _page(1, 2, 3)

    tap.stream("next")(lambda: _page(9))

    ran = sync(tap)

    assert (ran.code, ran.ids("next")) == (1, [9])
    assert "stuck: the source gives the same again and again" in ran.failures[0]


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
