"""An attempt loses no event, whatever the sink says."""

from collections.abc import Sequence
from typing import Any

import pytest

from balog.event import Event, encode
from balog.outbound.attempt import attempt
from balog.sinks import Delivery, SinkError

BATCH = [Delivery(event, encode(event)) for event in (Event.new("a", {"cls_type": "x", "n": n}) for n in range(4))]


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
    def write(batch: Sequence[Delivery]) -> None:
        raise SinkError("no", retryable=retryable, **named)

    outcome = attempt(write, BATCH)

    assert outcome.taken == 0
    assert outcome.left == (list(range(4)) if retryable else [])
    assert sorted(outcome.dead) == ([] if retryable else list(range(4)))
    assert "a bug in the sink: it names event " in str(outcome.error)


def test_an_index_that_is_no_number_leaves_all_events() -> None:
    def write(batch: Sequence[Delivery]) -> None:
        rejected: Any = {"0": "why"}
        raise SinkError("no", rejected=rejected)

    assert attempt(write, BATCH).left == [0, 1, 2, 3]
