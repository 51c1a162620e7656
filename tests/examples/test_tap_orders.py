"""The example of one page: its size, its practices, and its rows in a target after twenty interruptions."""

import json
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from balog.tap.verify import Options
from balog.tap.verify.testing import TapPractices
from examples.shop_server import Shop
from tests.examples.pipelines import ROOT, Pipeline

TAP = ROOT / "examples" / "tap_orders.py"


def config_of(shop: Shop) -> dict[str, str]:
    return {
        "base_url": shop.url,
        "client_id": shop.client_id,
        "client_secret": shop.client_secret,
        "start_date": "2026-01-01T00:00:00Z",
    }


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
        path = tmp_path_factory.mktemp("orders") / "c.json"
        with Shop(12) as shop:
            path.write_text(json.dumps(config_of(shop)))
            yield [sys.executable, str(TAP), "--config", str(path)]


@pytest.mark.service
def test_a_target_has_the_source_s_rows_after_twenty_interruptions(tmp_path: Path) -> None:
    """Given runs that end by signals at random requests while the source changes, then the last one completes them."""
    chance = random.Random(20261124)
    with Shop(15) as shop:
        pipeline = Pipeline(tmp_path, TAP, config_of(shop))
        left = [0]

        def interrupt(path: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                assert pipeline.is_started.wait(60)
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
