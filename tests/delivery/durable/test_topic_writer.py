"""The lane of one topic, by itself."""

import time
from typing import Any, cast

import pytest

from balog.delivery.durable.topic_writer import TopicWriter


def test_topics_that_fail_are_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = TopicWriter("order", cast(Any, None), cast(Any, None))
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    for wanted in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        lane._failed()
        assert 0.75 * wanted <= lane.retry_after <= 1.25 * wanted
    lane._succeeded()
    assert lane.retry_after == 0.0
    lane._failed()
    assert lane.retry_after < 0.5
