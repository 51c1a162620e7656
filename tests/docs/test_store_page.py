"""The configs on the pages about archives and STATE are what the broker takes."""

import re

import msgspec
import pytest

from balog.broker.config import BrokerConfig
from balog.broker.state import StateConfig
from balog.common.config.tagged_config import decode_tagged
from balog.sinks.store import StoreSinkConfig
from tests.documentation import docs_page

PAGES = "".join(
    docs_page(name).read_text(encoding="utf-8") for name in ("store.md", "keep-state.md", "stored-state.md")
)
BLOCKS = re.findall(r"^```json(?: \S+)?\n(.*?)^```", PAGES, re.DOTALL | re.MULTILINE)


def test_there_are_configs_on_the_pages():
    assert len(BLOCKS) == 4


@pytest.mark.parametrize("block", BLOCKS, ids=["disk", "s3", "state", "stored-state"])
def test_a_config_is_taken(block, monkeypatch, tmp_path):
    monkeypatch.setenv("S3_KEY", "x")
    secret = tmp_path / "s3"
    secret.write_text("y")
    config = msgspec.json.decode(
        block.replace("/run/secrets/s3", str(secret)), type=BrokerConfig, dec_hook=decode_tagged
    )
    for sink in config.sinks:
        sink.build().close()


def test_the_defaults_are_those_of_the_code():
    store = StoreSinkConfig(url="s3://b/c", topic="t")
    assert (store.max_file_bytes, store.build()._max_age) == (128 << 20, 300)
    assert StateConfig(hold=True).every == 1
