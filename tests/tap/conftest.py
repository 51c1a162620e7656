"""What the tests of the toolkit share."""

import pytest

from balog.tap import Tap


@pytest.fixture
def tap() -> Tap:
    """A tap without streams."""
    return Tap("tap-cool")
