"""An attempt loses no event, whatever the sink says."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.delivery.attempt import AttemptOutcome, attempt
from balog.event import Event, encode
from balog.sinks import Delivery, SinkError

EVENTS = [Event.new("a", {"cls_type": "x", "n": n}) for n in range(4)]


def new_batch() -> list[Delivery]:
    return [Delivery(event, encode(event)) for event in EVENTS]


def attempt_that_raises(error: BaseException) -> AttemptOutcome:
    def write(batch: Sequence[Delivery]) -> None:
        raise error

    return attempt(write, new_batch())


@pytest.mark.parametrize("raised", [ValueError("no"), SystemExit("no")])
def test_what_a_sink_raises_makes_dead_letters_and_ends_no_thread(raised: BaseException) -> None:
    outcome = attempt_that_raises(raised)
    assert outcome.dead == {number: f"{type(raised).__name__}: no" for number in range(4)}


@pytest.mark.parametrize(
    "named",
    [
        {"rejected": {999: "why"}, "remaining": ()},
        {"rejected": {-1: "why"}, "remaining": ()},
        {"remaining": [4]},
        {"rejected": {0: "why"}, "remaining": [1, 4]},
    ],
)
@pytest.mark.parametrize("retryable", [True, False])
def test_an_index_that_the_batch_does_not_have_leaves_all_events(named: dict[str, Any], retryable: bool) -> None:
    outcome = attempt_that_raises(SinkError("no", retryable=retryable, **named))
    assert outcome.taken == 0
    assert outcome.left == (list(range(4)) if retryable else [])
    assert sorted(outcome.dead) == ([] if retryable else list(range(4)))
    assert "a bug in the sink: it names event " in str(outcome.error)


@pytest.mark.parametrize(
    "named",
    [
        {"rejected": {"0": "why"}},
        {"rejected": {True: "why"}},
        {"rejected": [0, 1]},
        {"remaining": [0.0]},
        {"remaining": 3},
        {"remaining": [], "unnamed": "one"},
    ],
)
def test_an_index_that_is_no_number_leaves_all_events(named: dict[str, Any]) -> None:
    assert attempt_that_raises(SinkError("no", **named)).left == [0, 1, 2, 3]


def test_indexes_may_come_from_an_iterator() -> None:
    """Given remaining events as an iterator, which can be read once, then none of them counts as delivered."""

    def write(batch: Sequence[Delivery]) -> None:
        remaining: Any = iter([1, 3])
        raise SinkError("no", remaining=remaining)

    outcome = attempt(write, new_batch())
    assert (outcome.taken, outcome.left) == (2, [1, 3])


@given(st.integers(1, 40), st.sets(st.integers(0, 39)))
def test_each_refused_event_is_found_and_no_other_is_refused(most: int, refused: set[int]) -> None:
    """Given a server that takes ``most`` events in a request, then only events that it refuses alone are dead."""
    taken: list[int] = []

    def write(batch: Sequence[Delivery]) -> None:
        numbers = [event.payload["n"] for event, _ in batch]
        if len(batch) > most or refused.intersection(numbers):
            raise SinkError("too large", retryable=False)
        taken.extend(numbers)

    events = [Event.new("a", {"cls_type": "x", "n": n}) for n in range(40)]
    outcome = attempt(write, [Delivery(event, encode(event)) for event in events])
    assert (sorted(outcome.dead), outcome.left) == (sorted(refused), [])
    assert taken == [n for n in range(40) if n not in refused]


_INDEXES = st.integers(-2, 6)


@given(
    st.lists(
        st.none()
        | st.tuples(
            st.booleans(),
            st.dictionaries(_INDEXES, st.just("why"), max_size=3),
            st.none() | st.lists(_INDEXES, max_size=4),
            st.integers(-1, 5),
        ),
        max_size=8,
    )
)
def test_each_event_is_accounted_for_once_whatever_the_sink_names(answers: list[Any]) -> None:
    """Given answers with any indexes, then only an answer whose indexes are all right proves a delivery."""
    proven = 0

    def write(batch: Sequence[Delivery]) -> None:
        nonlocal proven
        if not answers or (answer := answers.pop(0)) is None:
            proven += len(batch)
            return
        retryable, rejected, remaining, unnamed = answer
        if all(0 <= n < len(batch) for n in (*rejected, *(remaining or ()))) and remaining is not None:
            proven += len(set(range(len(batch))) - set(remaining) - set(rejected))
        raise SinkError("no", retryable=retryable, rejected=rejected, remaining=remaining, unnamed=unnamed)

    outcome = attempt(write, new_batch())
    assert outcome.taken + outcome.unnamed + len(outcome.dead) + len(outcome.left) == len(EVENTS)
    assert outcome.taken <= proven
    assert not set(outcome.dead) & set(outcome.left)


def test_what_a_sink_refuses_without_an_error_is_refused() -> None:
    assert attempt(lambda batch: batch[1].refuse("why"), new_batch()).dead == {1: "why"}
