"""The page on forwarding: its blocks run as they are, and its numbers are the code's."""

import json
from pathlib import Path

import msgspec

from balog.broker.config import BrokerConfig
from balog.cli.forward import MAX_ATTEMPTS
from balog.consumers.queueing import in_flight
from tests.documentation import docs_page, run_task

PAGE = docs_page("forward.md").read_text(encoding="utf-8")
REFERENCE = docs_page("forwarding.md").read_text(encoding="utf-8")


def test_the_blocks_run(tmp_path: Path) -> None:
    run_task("forward.md", tmp_path)
    assert list((tmp_path / "archive" / "shop").glob("date=*/*.jsonl.gz"))


def test_every_part_of_a_broker_s_config_is_told() -> None:
    for name in json.loads(msgspec.json.encode(BrokerConfig(sinks=[]))):
        assert f"`{name}`" in REFERENCE


def test_its_numbers_are_the_code_s() -> None:
    assert f"only after {MAX_ATTEMPTS} deliveries" in REFERENCE
    assert f"until {in_flight.MAX_HELD:,} events or {in_flight.MAX_HELD_BYTES >> 20} MiB" in REFERENCE
