"""The page about taps: its files are written, its commands run."""

import os
import re
import subprocess
import sys
from pathlib import Path

from balog.tap.streams.settings import SETTINGS
from tests.documentation import docs_page

PAGE = docs_page("taps.md")
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_its_blocks_run(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    printed = []
    for kind, name, text in BLOCKS:
        if kind == "python":
            (tmp_path / name).write_text(text, encoding="utf-8")
        elif kind == "sh":
            ran = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", text],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, f"{text}{ran.stdout}{ran.stderr}"
            printed.append(ran.stdout)
        elif text.startswith("first.jsonl"):
            assert printed[-1] == text


def test_it_has_all_settings() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", TEXT, re.MULTILINE)
    said = {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    assert set(SETTINGS) <= said
