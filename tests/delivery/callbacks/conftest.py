"""Callbacks that run until the test is over, and those whom they call."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stand_ins.callbacks import House
from tests.stand_ins.http_server import HttpStandIn


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
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
