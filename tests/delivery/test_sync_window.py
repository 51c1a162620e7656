import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.delivery.sync_window import SyncWindow, tick_of

windows = st.sampled_from([0.1, 0.3, 1.0, 2.5, 10.0, 60.0])


@given(windows, st.lists(st.floats(0, 20), min_size=1, max_size=50), st.floats(0, 1))
def test_an_event_is_due_before_three_quarters_of_its_window_have_passed_and_not_before_six_tenths(window, gaps, phase):
    """Given a look every tick and events at any time, then each is due soon after six tenths of its window."""
    tick = tick_of(window)
    arrivals, at = [], 0.0
    for gap in gaps:
        at += gap * window / 10
        arrivals.append(at)
    tracked, due_at = SyncWindow(window), {}
    now, last = phase * tick, 0
    while len(due_at) < len(arrivals):
        arrived = sum(arrival <= now for arrival in arrivals)
        due = tracked.due(now, arrived)
        due_at.update(dict.fromkeys(range(last, due), now))
        last, now = due, now + tick
    waits = [due_at[number] - arrival for number, arrival in enumerate(arrivals)]
    assert max(waits) <= 0.75 * window + 1e-9
    assert min(waits) >= 0.6 * window - 1e-9


@pytest.mark.parametrize("window", [0.0, 0.05])
def test_without_a_window_everything_is_due_at_once(window):
    assert SyncWindow(window).due(1.0, 7) == 7


def test_nothing_that_arrives_costs_memory_between_two_looks():
    tracked = SyncWindow(1.0)
    for number in range(100_000):
        tracked.due(1.0, number)
        tracked.due(9.0, number)
    assert len(tracked._marks) <= 1
