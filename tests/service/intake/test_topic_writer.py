"""The writer of one topic, by itself."""

import random
import time
from typing import Any, cast

import pytest

from balog.service.intake.topic_writer import TopicWriter


def test_topics_that_fail_are_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TopicWriter("order", cast(Any, None), cast(Any, None), cast(Any, None))
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    monkeypatch.setattr(random, "random", lambda: 1.0)
    for wanted in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        writer._failed()
        assert writer.retry_after == pytest.approx(wanted)
    writer._succeeded()
    assert writer.retry_after == 0.0
    writer._failed()
    assert writer.retry_after == pytest.approx(0.25)
