"""balog's pytest plugin. It lies outside the package so that a test run that does not use it pays for no import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from balog.testing import Events, MemoryTopics

__all__ = ["events", "topics"]


@pytest.fixture
def events() -> Iterator[Events]:
    """What balog logs during the test; see ``balog.testing``."""
    from balog.testing import capture_events

    with capture_events() as caught:
        yield caught


@pytest.fixture
def topics() -> Iterator[MemoryTopics]:
    """An empty home of topics in memory, for tests of handlers; see ``balog.testing``."""
    from balog.testing import MemoryTopics

    with MemoryTopics() as home:
        yield home
