"""What the tests of the logger share."""

from collections.abc import Iterator

import pytest

from balog.log import configuration


@pytest.fixture(autouse=True)
def configuration_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the configuration and its levels after each test."""
    for name in ("BALOG_OUTPUT", "BALOG_LEVEL", "BALOG_RUN_ID", "BALOG_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    before, overrides = configuration.state.swap(None), configuration.state.swap_overrides({})
    yield
    configuration.state.swap_overrides(overrides)
    configuration.state.swap(before)
