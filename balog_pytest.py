"""balog's pytest plugin. It is outside the package, so that other test runs do not import balog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from balog.service.micro import Micro
    from balog.singer.assertions import TapAssertions
    from balog.tap.verify import VerifyReport
    from balog.testing import Events, MemoryTopics

__all__ = ["events", "micro", "pytest_addoption", "tap_assertions", "tap_report", "topics"]


pytest.register_assert_rewrite("balog.testing.contracts")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture ``micro``."""
    parser.addini("balog_registry", "Folder or URL of the schemas with which the fixture micro validates events.")
    parser.addini("balog_document", "File of the control document of the fixture micro.")


@pytest.fixture
def events() -> Iterator[Events]:
    """The events that the test logs; see ``balog.testing``."""
    from balog.testing import capture_events

    with capture_events() as caught:
        yield caught


@pytest.fixture
def topics() -> Iterator[MemoryTopics]:
    """An empty topic backend in memory, for tests of handlers; see ``balog.testing``."""
    from balog.testing import MemoryTopics

    with MemoryTopics() as topics:
        yield topics


@pytest.fixture
def micro(request: pytest.FixtureRequest) -> Iterator[Micro]:
    """An empty event service on a free port; see ``balog.service.micro``.

    ``balog_registry`` and ``balog_document`` in pytest's configuration name its schemas and its control document,
    relative to pytest's root.
    """
    from balog.common.storage import is_url
    from balog.service.micro import Micro

    root = request.config.rootpath
    registry, document = (request.config.getini(f"balog_{name}") for name in ("registry", "document"))
    if registry and not is_url(registry):
        registry = root / registry
    with Micro(registry or None, root / document if document else None) as running:
        yield running


@pytest.fixture
def tap_assertions(monkeypatch: pytest.MonkeyPatch) -> Iterator[TapAssertions]:
    """Check the messages of all syncs that the test runs with ``tap.run``; a broken assertion fails it at its end.

    ``tap_assertions.problems`` has the broken ones; a test that expects some clears it.
    """
    from balog.singer.assertions import TapAssertions
    from balog.tap.command.program import Program

    assertions = TapAssertions()
    monkeypatch.setattr(Program, "assertions", assertions)
    yield assertions
    if assertions.problems:
        pytest.fail("\n".join(f"{stream}: {reason}" for stream, reason in assertions.problems), pytrace=False)


@pytest.fixture(scope="class")
def tap_report(request: pytest.FixtureRequest, tap_command: Sequence[str]) -> VerifyReport:
    """The report of verifying a tap; see ``balog.tap.verify.testing``. Users define the fixture ``tap_command``."""
    from balog.tap.verify import verify

    return verify(tap_command, getattr(request.cls, "options", None))
