"""The config of the tap of tests."""

from pathlib import Path

import pytest

from balog.tap.verify import VerifyReport
from tests.tap.verify.defects import RULES, verified, write_config


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config with secrets."""
    return write_config(tmp_path_factory.mktemp("config") / "config.json")


@pytest.fixture(scope="module")
def report(config: Path) -> VerifyReport:
    """What ``RULES`` say of a tap with a doubled key, an ERROR in its log and no --about."""
    return verified(config, "doubled keys", "logs error", "no about", rules=RULES)
