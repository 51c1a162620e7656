import os
import threading
import time
from functools import partial
from itertools import count, pairwise

import pytest

from balog.event import ids
from balog.event.ids import new_id
from tests.forks import in_child
from tests.waiting import run_threads


@pytest.fixture
def source() -> ids._IdSource:
    return ids._IdSource()


def stop_the_clock(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    monkeypatch.setattr(ids, "time_ns", lambda: milliseconds * 1_000_000)


def test_an_id_is_lg_and_22_letters_and_digits() -> None:
    made = new_id()

    assert made[:2] == "LG"
    assert len(made) == 24
    assert made.isascii()
    assert made.isalnum()


def test_ids_of_one_thread_only_grow() -> None:
    made = [new_id() for _ in range(50_000)]

    assert all(one < next_one for one, next_one in pairwise(made))


def test_ids_grow_over_many_milliseconds_and_digits(source: ids._IdSource, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for milliseconds in [1, 61, 62, 3843, 3844, 62**4, 1_763_624_772_123, 62**8 - 1]:
        stop_the_clock(monkeypatch, milliseconds)
        made += [source.next() for _ in range(100)]

    assert made == sorted(made)
    assert {len(one) for one in made} == {24}


def test_no_two_threads_get_the_same_id_and_each_sees_its_own_grow() -> None:
    made: list[list[str]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def hammer(into: list[str]) -> None:
        start.wait()
        into.extend(new_id() for _ in range(20_000))

    run_threads(*(partial(hammer, part) for part in made))

    assert len({one for part in made for one in part}) == 8 * 20_000
    assert all(part == sorted(part) for part in made)


def test_forked_children_share_no_id_with_each_other_or_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_the_clock(monkeypatch, time.time_ns() // 1_000_000 + 60_000)  # so that no new millisecond parts them
    new_id()  # the parent's state is what a child inherits
    pipes = []
    for _ in range(6):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(read_end)
                with os.fdopen(write_end, "w") as out:
                    out.write("\n".join(new_id() for _ in range(500)))
            finally:
                os._exit(0)
        os.close(write_end)
        pipes.append((child, read_end))
    made = [new_id() for _ in range(500)]
    for child, read_end in pipes:
        with os.fdopen(read_end) as results:
            made += results.read().split()
        os.waitpid(child, 0)
    ids._ids.__init__()  # type: ignore[misc]  # back to the real clock

    assert len(made) == 7 * 500
    assert len(set(made)) == len(made)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_while_other_threads_make_ids_does_not_hang_the_child() -> None:
    done = threading.Event()

    def hammer() -> None:
        while not done.is_set():
            ids._ids._millisecond = 0  # so that every call takes the lock
            new_id()

    threads = [threading.Thread(target=hammer) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            assert in_child(new_id) == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_ids_go_on_growing_when_the_clock_steps_back(source: ids._IdSource, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_the_clock(monkeypatch, 1_000_000)
    before = [source.next() for _ in range(1000)]
    stop_the_clock(monkeypatch, 500)
    after = [source.next() for _ in range(1000)]

    assert before + after == sorted(set(before + after))


def test_ids_work_on_a_clock_before_1970(source: ids._IdSource, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_the_clock(monkeypatch, -5)
    made = [source.next() for _ in range(10)]

    assert made == sorted(set(made))
    assert {len(one) for one in made} == {24}


def test_more_than_14_million_in_one_millisecond_borrow_from_the_next(
    source: ids._IdSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_the_clock(monkeypatch, 1_000_000)
    first = source.next()
    source._high = len(ids._ENDS) - 1
    source._batch = source._stem + ids._ENDS[-1], iter(ids._ENDS[-3:])  # as if all but three were given out

    last_three = [source.next() for _ in range(3)]
    borrowed = [source.next() for _ in range(3)]
    stop_the_clock(monkeypatch, 1_000_001)  # the millisecond that was borrowed from
    later = [source.next() for _ in range(3)]

    made = [first, *last_three, *borrowed, *later]
    assert made == sorted(set(made))
    assert last_three[-1].endswith("zzzz")
    assert borrowed[0].startswith("LG" + ids.base62(1_000_001, 8))


def test_several_threads_that_run_out_together_borrow_once_each_without_a_repeat(
    source: ids._IdSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_the_clock(monkeypatch, 1_000_000)
    monkeypatch.setattr(ids, "_ENDS", ids._ENDS[:7])  # 49 ids in a millisecond
    made: list[str] = []
    run_threads(*[lambda: made.extend([source.next() for _ in range(2000)])] * 6)

    assert len(set(made)) == 12_000


def test_a_signal_handler_may_make_an_id_while_its_thread_makes_one(
    source: ids._IdSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner: list[str] = []
    stop_the_clock(monkeypatch, 1_000_000)
    base62, calls = ids.base62, count()

    def interrupted(number: int, width: int) -> str:
        if next(calls) == 0:  # inside the lock
            inner.append(source.next())
        return base62(number, width)

    monkeypatch.setattr(ids, "base62", interrupted)
    outer = source.next()

    assert len({outer, *inner}) == 2
