"""The page on watching: its file is evaluated as it says, and it names what each kind needs."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.watch.monitors import KINDS
from tests.documentation import docs_page

PAGE = docs_page("watch.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<language>\w+) (?P<name>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_its_file_is_evaluated_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in FENCE.finditer(PAGE):
        if block["name"] != "no-run":
            Path(block["name"]).write_text(block["text"], encoding="utf-8")
    command = re.search(r"^balog (watch .*--source \S+) >", PAGE, re.MULTILINE)
    assert command
    done = CliRunner().invoke(main, command[1].split())
    alerts = [json.loads(line)["payload"] for line in done.stdout.splitlines()]
    assert [(one["state"], one["since"][11:16]) for one in alerts] == [("firing", "07:15"), ("resolved", "09:00")]


def test_it_names_what_each_kind_needs() -> None:
    table = PAGE.partition("| kind | needs |")[2].partition("## ")[0]
    assert all(f"`{kind}`" in table for kind in KINDS)
