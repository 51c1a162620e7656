"""tap-shop keeps to Singer's practices, each a test; against the shop of this folder's example."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from balog.tap.verify import Options
from balog.tap.verify.testing import TapPractices

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE.parent))

from shop_server import Shop  # noqa: E402  # it lies beside this package


class TestTapShop(TapPractices):
    """A test for each practice, on one verification."""

    options = Options(states=1)

    @pytest.fixture(scope="module")
    @classmethod
    def tap_command(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[str]]:
        """The tap and a small shop."""
        config = tmp_path_factory.mktemp("shop") / "config.json"
        with Shop(12, keeps_refresh_token=True) as shop, pytest.MonkeyPatch.context() as patch:
            config.write_text(json.dumps({**json.loads((HERE / "config.json").read_text()), "base_url": shop.url}))
            patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])))
            yield [sys.executable, "-m", "tap_shop", "--config", str(config)]
