"""The page on records: its config and its stream give the schema and the records that it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.documentation import docs_page

PAGE = docs_page("records.md")
FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_s_example_is_what_it_says(tmp_path: Path) -> None:
    blocks = [found.groupdict() for found in FENCE.finditer(PAGE.read_text(encoding="utf-8"))]
    for block in blocks:
        if block["name"]:
            (tmp_path / block["name"]).write_text(block["text"], encoding="utf-8")
    (script,) = [block["text"] for block in blocks if block["language"] == "sh"]
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    done = subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "expected").read_bytes()
    (kept,) = (tmp_path / "quarantine.jsonl").read_bytes().splitlines()
    assert json.loads(kept)["raw"] == (tmp_path / "users.singer").read_text().splitlines()[-1]
