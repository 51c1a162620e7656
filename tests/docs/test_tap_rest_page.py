"""The pages about streams of REST endpoints: a tap reads the shop, and what it prints is as the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from balog.tap.endpoints import RestStream
from balog.tap.patterns.named_paging import named_paging
from tests.documentation import docs_page

ROOT = Path(__file__).parents[2]
TEXT = docs_page("tap-rest.md").read_text(encoding="utf-8")
HOW_TO = docs_page("write-a-rest-tap.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```", HOW_TO, re.DOTALL | re.MULTILINE)


def test_its_blocks_run_and_print_what_it_shows(tmp_path: Path) -> None:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("BALOG_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed = ""
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
            assert ran.returncode == 0, f"{text}{ran.stdout}{ran.stderr[-2000:]}"
            printed = ran.stdout
        else:
            assert printed == text


def test_it_has_all_settings_and_only_pagings_that_exist() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", TEXT, re.MULTILINE)
    mentioned = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(RestStream.own_settings) <= mentioned

    pagings = re.findall(r'^\| `"([^"]+)"` \|', TEXT, re.MULTILINE)
    assert len(pagings) == 7
    for text in pagings:
        named_paging(text)
