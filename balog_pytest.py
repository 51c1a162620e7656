"""balog's pytest plugin. It lies outside the package so that a test run that does not use it pays for no import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from balog.delivery.micro import Micro
    from balog.testing import Events, MemoryTopics
    from balog.verify import VerifyReport

__all__ = ["events", "micro", "pytest_addoption", "tap_report", "topics"]


pytest.register_assert_rewrite("balog.testing.contracts")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what ``micro`` reads from pytest's configuration."""
    parser.addini("balog_registry", "Folder or URL of the schemas that the fixture micro holds events against.")
    parser.addini("balog_document", "File of the document that the service of the fixture micro runs.")


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


@pytest.fixture
def micro(request: pytest.FixtureRequest) -> Iterator[Micro]:
    """balog's event service on a free port, empty, with schemas of its own; see ``balog.delivery.micro``.

    ``balog_registry`` and ``balog_document`` in pytest's configuration, relative to its root, say which schemas and
    which document.
    """
    from balog.delivery.micro import Micro
    from balog.storage import is_url

    root = request.config.rootpath
    registry, document = (request.config.getini(f"balog_{name}") for name in ("registry", "document"))
    if registry and not is_url(registry):
        registry = root / registry
    with Micro(registry or None, root / document if document else None) as running:
        yield running


@pytest.fixture(scope="class")
def tap_report(request: pytest.FixtureRequest, tap_command: Sequence[str]) -> VerifyReport:
    """The report of verifying a tap; see ``balog.verify.testing``. Users define the fixture ``tap_command``."""
    from balog.verify import verify

    return verify(tap_command, getattr(request.cls, "options", None))
