"""The rule by which a version is taken back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.delivery.control.monitor import FailureMonitor, OutcomeCount, wilson_interval
from balog.delivery.document import RollbackPolicy

WATCH = RollbackPolicy(window=10.0, events=50, rise=0.1)


def watched(before, after, name="intake", watch=WATCH, error="", until=11.0):
    """Give the verdict on a version after which a thing has counted ``after``, and before which ``before``."""
    watcher = FailureMonitor(10.0)
    watcher.sample(0.0, {name: OutcomeCount(1000, 7)})
    watcher.sample(9.0, {name: OutcomeCount(1000 + before[0], 7 + before[1])})
    start = OutcomeCount(1000 + before[0], 7 + before[1])
    watcher.begin(10.0, {name: start}, watch)
    now = 10.0
    while now < 10.0 + until:
        now += 1.0
        share = min((now - 10.0) / 10.0, 1.0)
        count = OutcomeCount(start.done + int(after[0] * share), start.failed + int(after[1] * share), error)
        watcher.sample(now, {name: count})
    return watcher.find_failure(now)


@pytest.mark.parametrize(
    ("before", "after", "is_taken_back"),
    [
        ((1000, 0), (1000, 0), False),
        ((1000, 0), (500, 500), True),
        ((1000, 0), (0, 60), True),
        ((1000, 0), (0, 49), False),  # too few
        ((1000, 0), (1000, 20), False),  # 2 %: surely more, and not by 10 of 100
        ((500, 500), (500, 500), False),  # as bad as it was
        ((500, 500), (100, 900), True),
        ((0, 0), (900, 100), False),
        ((20, 1), (45, 15), False),  # so few that chance can do it
        ((10, 0), (10_000, 2_500), False),  # who had little before may have failed as often
    ],
)
def test_only_a_clear_rise_counts(before, after, is_taken_back):
    assert bool(watched(before, after)) is is_taken_back


def test_the_reason_has_the_numbers():
    assert watched((1000, 0), (40, 60)) == "intake: 60 of 100 failed since, 0 of 1000 before"


def test_a_thing_that_is_new_is_compared_with_none():
    watcher = FailureMonitor()
    watcher.begin(0.0, {"filter new": OutcomeCount(0, 0)}, WATCH)
    watcher.sample(5.0, {"filter new": OutcomeCount(0, 80, "no such topic")})

    assert watcher.find_failure(5.0) == "filter new: 80 of 80 failed since, none before; no such topic"


def test_what_hangs_in_error_is_told_when_the_window_is_over():
    assert watched((1000, 0), (0, 0), error="refused") == "intake is failing: refused"
    assert watched((1000, 0), (0, 0), error="refused", until=6.0) == ""


def test_a_window_with_one_late_look_is_not_over():
    watcher = FailureMonitor()
    watcher.begin(0.0, {}, WATCH)
    watcher.sample(11.0, {"filter a": OutcomeCount(0, 0, "stuck")})
    assert not watcher.is_over(11.0)
    assert watcher.find_failure(11.0) == ""
    watcher.sample(12.0, {"filter a": OutcomeCount(0, 0, "stuck")})
    assert watcher.is_over(12.0)
    assert watcher.find_failure(12.0) == "filter a is failing: stuck"


def test_error_that_was_there_before_is_not_the_version_s():
    watcher = FailureMonitor()
    for now in range(10):
        watcher.sample(float(now), {"callback a": OutcomeCount(0, 0, "down")})
    watcher.begin(10.0, {"callback a": OutcomeCount(0, 0)}, WATCH)
    for now in range(11, 22):
        watcher.sample(float(now), {"callback a": OutcomeCount(0, 0, "down")})

    assert watcher.find_failure(21.0) == ""
    assert watcher.is_over(21.0)


def test_a_version_on_top_of_a_watched_one_is_judged_by_what_was_before_both():
    watcher = FailureMonitor()
    watcher.sample(0.0, {"intake": OutcomeCount(0, 0)})
    watcher.sample(9.0, {"intake": OutcomeCount(1000, 0)})
    watcher.begin(10.0, {"intake": OutcomeCount(1000, 0)}, WATCH)
    watcher.sample(12.0, {"intake": OutcomeCount(1005, 30)})
    watcher.begin(12.0, {"intake": OutcomeCount(1005, 30)}, WATCH)
    watcher.sample(14.0, {"intake": OutcomeCount(1010, 130)})

    assert watcher.find_failure(14.0) == "intake: 100 of 105 failed since, 0 of 1000 before"


def test_a_job_that_began_anew_counts_from_nothing():
    watcher = FailureMonitor()
    watcher.sample(0.0, {"filter a": OutcomeCount(500, 400)})
    watcher.sample(9.0, {"filter a": OutcomeCount(1500, 400)})
    watcher.begin(10.0, {"filter a": OutcomeCount(0, 0)}, WATCH)
    watcher.sample(12.0, {"filter a": OutcomeCount(10, 90)})

    assert watcher.find_failure(12.0) == "filter a: 90 of 100 failed since, 0 of 1000 before"


def test_rates_are_of_the_window():
    watcher = FailureMonitor(10.0)
    for now in range(31):
        watcher.sample(float(now), {"intake": OutcomeCount(now * 90, now * 10)})

    assert watcher.rates() == (100.0, 0.1)


@given(failed=st.integers(0, 1000), more=st.integers(0, 1000))
def test_an_interval_holds_the_share_that_was_seen(failed, more):
    low, high = wilson_interval(failed, failed + more)

    assert 0.0 <= low <= high <= 1.0
    if failed + more:
        assert low <= failed / (failed + more) + 1e-12
        assert high >= failed / (failed + more) - 1e-12
