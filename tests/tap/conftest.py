"""What the tests of the toolkit share."""

from collections.abc import Iterator

import pytest

from balog.tap import Tap
from tests.stand_ins.http_server import HttpStandIn


@pytest.fixture
def tap() -> Tap:
    """A tap without streams."""
    return Tap("tap-cool")


@pytest.fixture
def server() -> Iterator[HttpStandIn]:
    """A server that answers 200 until a test scripts it."""
    with HttpStandIn() as server:
        yield server
