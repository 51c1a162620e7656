"""The example of one page: its size, its practices, and its rows in a target after twenty interruptions."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from balog.tap.verify import Options
from balog.tap.verify.testing import TapPractices
from examples.shop_server import Shop
from tests.services.real_taps import installed

ROOT = Path(__file__).parents[2]
TAP = ROOT / "examples" / "tap_orders.py"


def config_of(shop: Shop, path: Path) -> Path:
    path.write_text(
        json.dumps(
            {
                "base_url": shop.url,
                "client_id": shop.client_id,
                "client_secret": shop.client_secret,
                "start_date": "2026-01-01T00:00:00Z",
            }
        )
    )
    return path


def test_it_has_less_than_45_lines() -> None:
    assert len(TAP.read_text().splitlines()) < 45


@pytest.mark.filterwarnings("error::balog.tap.verify.testing.TapWarning")
class TestTapOrders(TapPractices):
    """A test for each practice, on one verification; a warning fails it, too."""

    options = Options(states=1)

    @pytest.fixture(scope="module")
    @classmethod
    def tap_command(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[str]]:
        """The tap and a small shop."""
        with Shop(12) as shop:
            yield [
                sys.executable,
                str(TAP),
                "--config",
                str(config_of(shop, tmp_path_factory.mktemp("orders") / "c.json")),
            ]


class Pipeline:
    """``tap | target-jsonl``, from the last state that the target wrote."""

    def __init__(self, folder: Path, shop: Shop, target: str) -> None:
        self.folder, self.target = folder, target
        self.config = config_of(shop, folder / "config.json")
        (folder / "target.json").write_text(json.dumps({"destination_path": str(folder), "do_timestamp_file": False}))
        self.tap: subprocess.Popen[bytes] | None = None
        self.is_started = threading.Event()

    def run(self) -> int:
        """Run it once, and return the tap's exit code."""
        command = [sys.executable, str(TAP), "--config", str(self.config)]
        state = self.folder / "state.json"
        if state.exists():
            command += ["--state", str(state)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
        environment["PYTHONPATH"] = str(ROOT)
        self.is_started.clear()
        self.tap = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.is_started.set()
        target = subprocess.run(
            [self.target, "--config", str(self.folder / "target.json")],
            stdin=self.tap.stdout,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert target.returncode == 0 or "JSONDecodeError" in target.stderr, (
            target.stderr
        )  # half a line of a killed tap
        if states := target.stdout.splitlines():
            state.write_text(states[-1])
        code = self.tap.wait(60)
        assert self.tap.stdout is not None
        self.tap.stdout.close()
        return code

    def rows(self, stream: str, *keys: str) -> dict[Any, dict[str, Any]]:
        """Return the last row of each key."""
        lines = (self.folder / f"{stream}.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        return {tuple(row[key] for key in keys): row for row in found}


@pytest.mark.service
def test_a_target_has_the_source_s_rows_after_twenty_interruptions(tmp_path: Path) -> None:
    """Given runs that end by signals at random requests while the source changes, then the last one completes them."""
    chance = random.Random(20261124)
    target = installed("target-jsonl", "target-jsonl")
    with Shop(15) as shop:
        pipeline = Pipeline(tmp_path, shop, target)
        left = [0]

        def interrupt(path: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                assert pipeline.is_started.wait(60)
                assert pipeline.tap is not None
                pipeline.tap.send_signal(chance.choice([signal.SIGTERM, signal.SIGINT, signal.SIGKILL]))

        shop.before = interrupt
        codes = []
        for number in range(20):
            left[0] = chance.randint(1, 34)
            codes.append(pipeline.run())
            if number % 5 == 0:
                shop.touch(customers=chance.randint(1, 5), orders=chance.randint(1, 5))
        left[0] = 0
        assert set(codes) <= {-signal.SIGKILL, 143, 130, 0}
        assert len([code for code in codes if code]) >= 15
        assert pipeline.run() == 0

        assert pipeline.rows("customers", "id") == {(id,): row for id, row in shop.customers.items()}
        assert pipeline.rows("orders", "id") == {(id,): row for id, row in shop.orders.items()}
        assert pipeline.rows("order_lines", "order_id", "line") == {
            (line["order_id"], line["line"]): line for lines in shop.lines.values() for line in lines
        }
