"""What the page on configs of taps shows is what happens: its code runs, its commands answer what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documentation import docs_page, run_page

PAGE = docs_page("tap-config.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
EXAMPLES = [
    (command, answer)
    for kind, text in BLOCKS
    if kind == "console"
    for command, answer in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "tap_cool.py").write_text(PYTHON[0])
    (folder / "config.json").write_text(re.findall(r"echo '(.*)' > config.json", PAGE)[0])
    return folder


@pytest.mark.parametrize(("command", "answer"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_a_command_answers_what_the_page_says(folder: Path, command: str, answer: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAP_COOL_")}
    line = command.replace("python ", f"{sys.executable} ", 1) if command.startswith("python ") else command
    ran = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout + ran.stderr == answer
    assert ran.returncode == (2 if answer.startswith("tap-cool: ") else 0)


def test_the_python_runs() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for text in PYTHON:
        exec(compile(text, "docs/reference/tap-config.md", "exec"), names)


def test_the_stream_of_the_page_on_catalogs_adds_metadata(tmp_path: Path) -> None:
    (found,) = run_page("tap-catalog.md", tmp_path)
    assert found == "1\n"
