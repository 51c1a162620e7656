"""What the page on the event service says is so."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.service import service
from balog.service.api import tokens
from balog.service.settings import ServiceConfig
from balog.sinks.service import Answer
from tests.documentation import docs_page
from tests.service.serving import Asked

PAGE = "".join(docs_page(name).read_text(encoding="utf-8") for name in ("service.md", "service-config.md"))
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
LINES = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]


def test_its_commands_run_and_what_is_sent_is_answered_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (written,) = (line for line in LINES if line.startswith("echo"))
    Path("service.json").write_text(shlex.split(written)[1])
    for line in LINES:
        words = shlex.split(line)
        if words[:2] in (["balog", "check"], ["balog", "token"]):
            result = CliRunner().invoke(main, words[1:])
            assert result.exit_code == 0, result.output
    config = ServiceConfig(**{**json.loads(Path("service.json").read_text()), "listen": ":0"})
    (sent,) = (shlex.split(line) for line in LINES if line.startswith("curl"))
    with service.Service(config) as running:
        asked = Asked(running)
        status, answer = asked.post(sent[3].encode(), content_type="application/x-www-form-urlencoded")
        asked.http.clear()
    (shown,) = (json.loads(text) for language, text in BLOCKS if language == "json")
    answer["items"][0]["id"] = shown["items"][0]["id"]
    assert (status, answer) == (202, shown)
    assert shown.keys() == set(Answer.__struct_fields__)
    assert len(tokens.Tokens("tokens.json")._entries) == 2
