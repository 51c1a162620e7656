"""The page on topics: its blocks run as they are, in order, in one folder, and it knows every part and option."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from balog.cli.topics import command
from balog.topics.local import DEFAULT_RETENTION
from tests.documentation import docs_page

PAGE = "".join(docs_page(name).read_text(encoding="utf-8") for name in ("topics-command.md", "topics.md"))
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_blocks_run(tmp_path: Path) -> None:
    bin = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}
    assert len(BLOCKS) == 5
    for language, text in BLOCKS:
        program = ["sh", "-e", "-c", text] if language == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{text}\n{done.stderr}"
    assert (tmp_path / "archive" / "orders").is_dir()
    assert (tmp_path / "topics" / "orders-again.sqlite").is_file()


@pytest.mark.parametrize("name", sorted(command.commands))
def test_every_part_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}[` ]|balog topics {name} ", PAGE)


def test_the_retention_is_that_of_the_code() -> None:
    assert f"kept for {DEFAULT_RETENTION / 86400:.0f} days" in PAGE
