"""The configs and documents that pages show are taken as they stand, and the pages name every option."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from balog.broker.config import BrokerConfig, RunConfig
from balog.common.config.tagged_config import decode_tagged
from balog.service.control.validation import read_document
from balog.service.document import Callback
from balog.sinks import AnySinkConfig
from balog.sinks.alerts.alert_sink import AlertSinkOptions
from balog.sinks.alerts.alert_text import _FIELDS
from balog.sinks.base import SinkOptions
from tests.documentation import blocks, page_text

CONFIGS = {
    "alert-sinks": AnySinkConfig, "batch-messages": BrokerConfig, "broker": BrokerConfig, "keep-state": BrokerConfig,
    "sidecar": RunConfig, "spool": BrokerConfig, "store": BrokerConfig, "stored-state": BrokerConfig,
}  # fmt: skip


@pytest.mark.parametrize("page", CONFIGS)
def test_the_configs_of_a_page_are_taken(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SMTP_PASSWORD", "PAGERDUTY_KEY", "S3_KEY"):
        monkeypatch.setenv(name, "secret")
    (tmp_path / "s3").write_text("y")
    texts = [block.text for block in blocks(page_text(page)) if block.language == "json"]
    assert texts
    for text in texts:
        text = text.replace("/run/secrets/s3", str(tmp_path / "s3"))
        config: Any = msgspec.json.decode(text, type=CONFIGS[page], dec_hook=decode_tagged)
        if page == "alert-sinks":
            config.build().close()
        elif page in ("store", "keep-state", "stored-state"):
            for sink in config.sinks:
                sink.build().close()


@pytest.mark.parametrize("page", ["callbacks", "control", "filters", "clickhouse"])
def test_the_documents_of_a_page_are_documents(page: str) -> None:
    documents = [block for block in blocks(page_text(page)) if block.language == "json" and block.name != "broker.json"]
    assert documents
    for block in documents:
        assert read_document(block.text.encode(), block.name)[1] == []


def names_of(struct: Any) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("alert-sinks", names_of(AlertSinkOptions) - names_of(SinkOptions)),
        ("callbacks", names_of(Callback)),
        ("forwarding", names_of(BrokerConfig)),
    ],
)
def test_a_page_names_every_option(page: str, options: set[str]) -> None:
    text = page_text(page)
    assert [name for name in options if f"`{name}`" not in text] == []


def test_the_page_of_alerts_names_every_field() -> None:
    assert {f"{{{name}}}" for name in _FIELDS} <= set(re.findall(r"`(\{[a-z]+\})`", page_text("alert-sinks")))
