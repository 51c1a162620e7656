"""The page on alerts: its configs are taken, its tables name each option and each field."""

import re
import shlex
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.sinks import AnySinkConfig
from balog.sinks.alert_sink import AlertSinkOptions
from balog.sinks.alert_text import _FIELDS
from balog.sinks.base import SinkOptions
from balog.tagged_config import decode_tagged
from balog.topics import Message, open_topics
from tests.documentation import docs_page

PAGE = docs_page("alerts.md").read_text(encoding="utf-8")
SINKS = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", SINKS)
def test_a_sink_on_the_page_is_taken(text, monkeypatch):
    for name in ("SMTP_PASSWORD", "PAGERDUTY_KEY"):
        monkeypatch.setenv(name, "secret")
    msgspec.json.decode(text, type=AnySinkConfig, dec_hook=decode_tagged).build().close()


def test_its_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = re.search(r"^```yaml sinks.yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert file
    Path("sinks.yaml").write_text(file[1], encoding="utf-8")
    with open_topics("local:topics") as topics:
        topics.topic("singer-events").publish([Message("1", b"{}")])
    commands = re.findall(r"^balog (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        done = CliRunner().invoke(main, shlex.split(command))
        assert done.exit_code == 0, done.output
        if "preview" in command:
            assert "Subject: [error] orders-arrive: " in done.stdout


def test_it_names_each_option_and_each_field():
    own = {field.encode_name for field in msgspec.structs.fields(AlertSinkOptions)}
    for name in own - {field.encode_name for field in msgspec.structs.fields(SinkOptions)}:
        assert f"| `{name}` |" in PAGE
    assert {f"{{{name}}}" for name in _FIELDS} <= set(re.findall(r"`(\{[a-z]+\})`", PAGE))
