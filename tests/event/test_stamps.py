import os
import time
from datetime import datetime, timezone

import pytest

from balog.event import ids
from balog.event.ids import new_id
from tests.forks import in_child
from tests.waiting import run_threads


def next_stamp() -> tuple[bytes, bytes]:
    """Return the id and the time as a whole."""
    prefix, end, moment, microseconds = ids.next_stamp()
    return prefix + end, moment + microseconds


@pytest.fixture(autouse=True)
def clock_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget milliseconds and ids that a test makes up."""
    monkeypatch.setattr(ids, "_current", ids._NOTHING_KNOWN)


@pytest.mark.parametrize(
    "nanoseconds", [0, 999, 1_000, 999_999_999, 1_000_000_000, 1_795_000_000_123_456_789, 253_402_300_799_999_999_999]
)
def test_the_timestamp_is_the_clock_s_in_microseconds(monkeypatch: pytest.MonkeyPatch, nanoseconds: int) -> None:
    """datetime is the oracle; parts below a microsecond are cut off."""
    monkeypatch.setattr(ids, "time_ns", lambda: nanoseconds)
    monkeypatch.setattr(ids, "id_batch", ids._IdSource().batch)
    seconds, rest = divmod(nanoseconds // 1000, 1_000_000)
    expected = datetime.fromtimestamp(seconds, timezone.utc).replace(microsecond=rest)

    for _ in range(2):  # anew, and from what is known
        assert next_stamp()[1].decode() == expected.isoformat(timespec="microseconds").replace("+00:00", "Z")


def test_the_timestamp_follows_a_clock_that_steps_back_and_ids_still_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id never goes back, a time does."""
    monkeypatch.setattr(ids, "id_batch", ids._IdSource().batch)
    made = []
    for moment in (5_000_000, 5_001_000, 4_000_000, 4_999_999, 6_000_000, -7_000_000):
        monkeypatch.setattr(ids, "time_ns", lambda moment=moment: moment)
        made.append(next_stamp())

    assert [id for id, _ in made] == sorted({id for id, _ in made})
    assert [time[-8:] for _, time in made] == [
        b".005000Z",
        b".005001Z",
        b".004000Z",
        b".004999Z",
        b".006000Z",
        b".993000Z",
    ]


def test_stamps_and_new_ids_share_no_id_over_many_threads_and_beyond_one_batch() -> None:
    """3,844 ids are one batch; each thread's ids only grow."""
    made: list[list[str]] = []

    def make() -> None:
        own = [id for _ in range(5000) for id in (next_stamp()[0].decode(), new_id())]
        made.append(own)

    run_threads(*[make] * 6)

    assert len({id for own in made for id in own}) == 6 * 10_000
    assert {len(id) for own in made for id in own} == {24}


def test_one_thread_s_ids_grow_beyond_the_batches_of_a_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still."""
    monkeypatch.setattr(ids, "id_batch", ids._IdSource().batch)
    monkeypatch.setattr(ids, "time_ns", lambda: 1_000_000_000_000)
    made = [next_stamp()[0] for _ in range(10_000)]

    assert made == sorted(set(made))


def test_a_forked_child_has_ids_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the millisecond is the same."""
    moment = time.time_ns() + 60_000_000_000
    monkeypatch.setattr(ids, "time_ns", lambda: moment)
    next_stamp()
    read_end, write_end = os.pipe()
    assert in_child(lambda: os.write(write_end, b"\n".join(next_stamp()[0] for _ in range(100)))) == 0
    os.close(write_end)
    with os.fdopen(read_end, "rb") as results:
        theirs = results.read().split()
    ours = [next_stamp()[0] for _ in range(100)]
    ids._ids.__init__()  # type: ignore[misc]  # back to the real clock

    assert len({*theirs, *ours}) == 200
