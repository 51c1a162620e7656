"""balog's pytest plugin. It lies outside the package so that a test run that does not use it pays for no import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from balog.testing import Events

__all__ = ["events"]


@pytest.fixture
def events() -> Iterator[Events]:
    """What balog logs during the test; see ``balog.testing``."""
    from balog.testing import capture_events

    with capture_events() as caught:
        yield caught
