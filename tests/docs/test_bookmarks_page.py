"""The page about bookmarks: its files are written, its commands run, what it shows is what they print."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.documentation import docs_page

TEXT = docs_page("bookmarks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_its_blocks_run(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    printed, shown = [], []
    for kind, name, text in BLOCKS:
        if kind == "text":
            shown.append(text)
        if kind == "python":
            (tmp_path / name).write_text(text, encoding="utf-8")
        if kind == "sh":
            command = text
            ran = subprocess.run(
                ["bash", "-e", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, f"{command}{ran.stdout}{ran.stderr}"
            printed.append(ran.stdout)
    assert printed == shown


def test_the_states_that_it_shows_are_states() -> None:
    from balog.tap.bookmarks import state_of

    states = [json.loads(text) for kind, _, text in BLOCKS if kind == "json"]
    assert len(states) == 2
    for state in states:
        assert state_of(state, ["contacts", "accounts", "notes"], log=object()).as_json() == state
