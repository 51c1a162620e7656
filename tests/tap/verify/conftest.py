"""The config of the tap of tests."""

from pathlib import Path

import pytest

from tests.tap.verify.defects import write_config


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config with secrets."""
    return write_config(tmp_path_factory.mktemp("config") / "config.json")
