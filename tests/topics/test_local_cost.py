"""What a local topic does for a receive does not grow with what else is in flight."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from balog.topics import Message
from balog.topics.local import LocalTopics


class Steps:
    """Counts what SQLite does, in tens of its virtual machine's instructions."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        connect = sqlite3.connect

        def connected(*args: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*args, **options)
            connection.set_progress_handler(self._step, 10)
            return connection

        monkeypatch.setattr(sqlite3, "connect", connected)

    def _step(self) -> int:
        self.count += 1
        return 0


def test_a_receive_costs_the_same_whether_many_others_wait_for_a_retry_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps()
    steps.watch(monkeypatch)
    with LocalTopics(tmp_path) as home:
        topic = home.topic("orders")
        topic.publish([Message(f"m{number}", b"{}") for number in range(2_000)])

        def receive_some() -> int:
            before = steps.count
            received = topic.receive("g", 50)
            assert len(received) == 50
            spent = steps.count - before
            topic.ack("g", received)
            return spent

        alone = receive_some()
        topic.release("g", topic.receive("g", 1_500), delay=1_000)
        assert alone > 0
        assert receive_some() <= 1.5 * alone
