import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import balog
from balog.tap.http import Policy
from balog.tap.patterns import concurrently
from balog.testing import capture_events
from tests.waiting import wait_for


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(1, 8))
def test_results_come_in_the_order_of_the_items(count: int, workers: int) -> None:
    assert list(concurrently(range(count), lambda n: n * n, workers=workers)) == [n * n for n in range(count)]


def test_so_many_run_at_a_time() -> None:
    together = threading.Barrier(3, timeout=10)
    assert list(concurrently(range(6), lambda n: together.wait() >= 0, workers=3)) == [True] * 6


def test_no_more_is_held_than_was_allowed() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    found = concurrently(items(), lambda n: n, workers=2)
    assert next(found) == 0
    assert len(taken) == 4
    assert next(found) == 1
    assert len(taken) == 5
    found.close()  # type: ignore[attr-defined]


def test_an_error_comes_out_in_its_place_and_nothing_new_begins() -> None:
    begun: list[int] = []

    def ask(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise KeyError("id")
        return number

    found = concurrently(range(1000), ask, workers=2)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError):
        next(found)
    assert len(begun) <= 3 + 2 * 2 + 1


def wait_until_gone(before: set[threading.Thread]) -> None:
    wait_for(lambda: not any(thread.name == "balog tap" for thread in set(threading.enumerate()) - before))


def test_who_waits_for_another_try_is_woken_when_nobody_wants_it_any_more() -> None:
    before = set(threading.enumerate())
    waiting = threading.Event()

    def ask(number: int) -> int:
        if number == 0:
            assert waiting.wait(10)
            raise KeyError("id")
        for attempt in Policy(first=3600, longest=3600, total=1e6, chance=lambda: 1.0).attempts("contacts"):
            with attempt:
                waiting.set()
                raise TimeoutError
        return number

    with pytest.raises(KeyError):
        list(concurrently(range(2), ask, workers=2))
    wait_until_gone(before)


def test_threads_end_with_the_results() -> None:
    before = set(threading.enumerate())
    found = concurrently(range(100), lambda n: n, workers=3)
    next(found)
    found.close()  # type: ignore[attr-defined]
    wait_until_gone(before)


def test_what_is_bound_to_the_log_is_bound_in_the_threads() -> None:
    with capture_events() as captured, balog.bound(account="a1"):
        list(concurrently([1], lambda n: balog.get_logger("x").info("asked")))
    (event,) = captured
    assert event.header.context["account"] == "a1"


def test_an_error_of_the_items_comes_after_the_results_before_it() -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise ValueError("no more")

    results = concurrently(items(), lambda item: item)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="no more"):
        next(results)
