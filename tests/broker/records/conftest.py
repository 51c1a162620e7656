"""The key of masks is there in each test of records."""

import pytest

from tests.broker.records.editing import KEY


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASK_KEY", KEY)
