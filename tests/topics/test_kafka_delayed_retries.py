"""How long a message of a retry topic waits, when the clock was set since it was written."""

from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from balog.topics.kafka.records import DUE, delay_of


class Record:
    def __init__(self, written: float) -> None:
        self._written = written

    def timestamp(self) -> tuple[int, int]:
        return 1, round(self._written * 1000)


@pytest.mark.parametrize(
    ("written", "due", "now", "delay"),
    [
        (1000.0, 1030.0, 1010.0, 20.0),
        (1000.0, 1030.0, 1040.0, 0.0),
        (1000.0, 1030.0, 400.0, 30.0),  # the clock was set back
        (-1.0, 1030.0, 1010.0, 20.0),  # the record has no time
        (1000.0, None, 400.0, 0.0),
    ],
)
def test_a_delay_is_never_longer_than_it_was_when_it_was_written(written: float, due: Any, now: float, delay: float):
    headers = {} if due is None else {DUE: repr(due)}
    assert delay_of(Record(written), headers, now) == delay  # type: ignore[arg-type]
