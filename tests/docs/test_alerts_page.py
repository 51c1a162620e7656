"""The page on sinks for alerts: its configs are taken, its tables name each option and each field."""

import re

import msgspec
import pytest

from balog.common.config.tagged_config import decode_tagged
from balog.sinks import AnySinkConfig
from balog.sinks.alerts.alert_sink import AlertSinkOptions
from balog.sinks.alerts.alert_text import _FIELDS
from balog.sinks.base import SinkOptions
from tests.documentation import docs_page

PAGE = docs_page("alert-sinks.md").read_text(encoding="utf-8")
SINKS = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", SINKS)
def test_a_sink_on_the_page_is_taken(text, monkeypatch):
    for name in ("SMTP_PASSWORD", "PAGERDUTY_KEY"):
        monkeypatch.setenv(name, "secret")
    msgspec.json.decode(text, type=AnySinkConfig, dec_hook=decode_tagged).build().close()


def test_it_names_each_option_and_each_field():
    own = {field.encode_name for field in msgspec.structs.fields(AlertSinkOptions)}
    for name in own - {field.encode_name for field in msgspec.structs.fields(SinkOptions)}:
        assert f"| `{name}` |" in PAGE
    assert {f"{{{name}}}" for name in _FIELDS} <= set(re.findall(r"`(\{[a-z]+\})`", PAGE))
