"""The pages on other libraries' lines and on metrics: their Python blocks run as they are, in order, in one folder.

A block that names a file (``ini logging.conf``) is written to it; those that need a tap's own environment are run by
``tests/services/test_taps_on_balog.py``.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation import docs_page

FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("stdlib.md", [["requests"], ["tap-users.requests"]]),
        ("stdlib-records.md", [["tap-users.requests"]]),
        ("metrics.md", [["docs.metric"] * 3, ["docs.metric"] * 3]),
    ],
)
def test_the_blocks_of_a_page_run_and_write_events(page: str, written: list[list[str]], tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
    seen = []
    for block in FENCE.finditer(docs_page(page).read_text(encoding="utf-8")):
        if block["name"]:
            (tmp_path / block["name"]).write_text(block["text"], encoding="utf-8")
        if block["language"] == "python":
            script = tmp_path / (block["name"] or "docs")
            script.write_text(block["text"], encoding="utf-8")
            done = subprocess.run(
                [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, done.stderr
            lines = [json.loads(line) for line in (done.stdout + done.stderr).splitlines()]
            seen.append([line.get("value", line)["header"]["channel"] for line in lines])
        elif not block["name"]:
            assert block["language"] in ("sh", "text")
    assert seen == written


def test_the_formatter_s_file_holds_the_event_that_the_handler_wrote(tmp_path: Path) -> None:
    (block,) = [
        found["text"]
        for found in FENCE.finditer(docs_page("stdlib.md").read_text(encoding="utf-8"))
        if "EventFormatter" in found["text"]
    ]
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    (event,) = [json.loads(line) for line in done.stderr.splitlines()]
    (line,) = [json.loads(text) for text in (tmp_path / "tap.jsonl").read_text().splitlines()]
    assert (line["payload"], line["header"]["timestamp"]) == (event["payload"], event["header"]["timestamp"])
