"""Callbacks that run until the test is over, and those whom they call."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from balog.topics.local import LocalTopic
from tests.stand_ins.callbacks import House
from tests.stand_ins.http_server import HttpStandIn


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(LocalTopic, "poll_timeout", 0.05)  # seconds that a stop may wait for a topic that has nothing
    house = House(tmp_path / "topics")
    yield house
    house.close()


@pytest.fixture
def receiver() -> Iterator[HttpStandIn]:
    with HttpStandIn() as server:
        yield server


@pytest.fixture
def other() -> Iterator[HttpStandIn]:
    with HttpStandIn() as server:
        yield server
