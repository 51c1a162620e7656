"""How much of each stream may wait, and when to come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.service.intake.admission import FlowControl
from tests.waiting import Clock


@pytest.fixture
def flow(clock: Clock) -> FlowControl:
    return FlowControl(1000, clock, jitter=lambda: 1.0)


def test_one_stream_has_half_of_the_memory_and_a_second_half_of_the_rest(flow: FlowControl) -> None:
    assert flow.admit("hot", [10] * 200)[0] == 50
    assert flow.admit("hot", [10])[0] == 0
    assert flow.admit("warm", [10] * 200)[0] == 25
    assert flow.admit("calm", [10] * 12) == (12, 0.0)


def test_a_stream_at_rest_may_have_one_large_event_if_it_fits(flow: FlowControl) -> None:
    assert flow.admit("a", [900]) == (1, 0.0)
    assert flow.admit("b", [101])[0] == 0
    assert flow.admit("b", [100]) == (1, 0.0)


def test_what_is_behind_a_refused_event_does_not_overtake_it(flow: FlowControl) -> None:
    assert flow.admit("a", [10, 2000, 10])[0] == 1


def test_times_to_come_back_differ() -> None:
    flow = FlowControl(100, Clock(1000.0))
    flow.admit("a", [1] * 50)
    assert len({flow.admit("a", [1])[1] for _ in range(20)}) > 10


def test_a_rate_lets_a_second_s_worth_in_at_once_and_then_as_time_goes(flow: FlowControl, clock: Clock) -> None:
    flow.limit_rates({"a": 10})
    assert flow.admit("a", [1] * 15) == (10, 1.0)
    clock.now += 0.5
    assert flow.admit("a", [1] * 15)[0] == 5
    clock.now += 100
    assert flow.admit("a", [1] * 15)[0] == 10
    assert flow.admit("b", [1] * 15)[0] == 15
    flow.limit_rates({})
    assert flow.admit("a", [1] * 15)[0] == 15


def test_a_rate_below_one_a_second_lets_one_in_after_its_time(flow: FlowControl, clock: Clock) -> None:
    flow.limit_rates({"a": 0.1})
    assert flow.admit("a", [1])[0] == 1
    taken, later = flow.admit("a", [1])
    assert (taken, later) == (0, 10.0)
    clock.now += 10
    assert flow.admit("a", [1])[0] == 1


def test_streams_without_end_are_forgotten_when_they_rest(flow: FlowControl) -> None:
    flow.admit("busy", [1])
    for n in range(10_000):
        flow.admit(f"s{n}", [1])
        flow.done(f"s{n}", 1, 1)
    assert len(flow.states()) <= 4096
    assert flow.states()["busy"].waiting == 1


REQUESTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(st.integers(1, 400), min_size=1, max_size=8), st.booleans())
)


@given(REQUESTS)
def test_there_is_never_more_than_the_limit_and_what_ends_is_gone(requests: list[tuple[str, list[int], bool]]) -> None:
    flow = FlowControl(1000, Clock(1000.0))
    waiting: list[tuple[str, int, int]] = []
    for stream, sizes, ends in requests:
        taken, later = flow.admit(stream, sizes)
        assert (later == 0) == (taken == len(sizes))
        waiting.append((stream, taken, sum(sizes[:taken])))
        assert flow.bytes == sum(size for _, _, size in waiting) <= 1000
        if ends:
            flow.done(*waiting.pop(0))
    for one in waiting:
        flow.done(*one)
    assert (flow.bytes, flow.waiting) == (0, 0)
