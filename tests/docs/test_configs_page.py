"""The page on config files: its files are checked, and its output is printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.documentation import docs_page

PAGE = docs_page("configs.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_its_files_are_checked_as_it_says(tmp_path: Path) -> None:
    """Shell blocks run in order; the text block is what the last one before it printed."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    printed = ""
    for block in FENCE.finditer(PAGE):
        if block["name"]:
            (tmp_path / block["name"]).write_text(block["text"], encoding="utf-8")
        elif block["language"] == "text":
            assert printed == f"{block['text']}exit code 2\n"
        else:
            done = subprocess.run(
                ["sh", "-ec", block["text"]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            printed = done.stderr + done.stdout
    assert '"BrokerConfig"' in (tmp_path / "broker.schema.json").read_text(encoding="utf-8")
