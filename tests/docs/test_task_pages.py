"""The blocks of each page of one task run as they are, in a folder that has an archive of events.

A block is run or written by its info string: its language, and a name, which is a file to write. ``sh`` and ``python``
without a name run. A ``text`` after a block that ran shows its output: each line comes in it, in this order. ``…`` is
any text. ``sh spark`` and ``python spark`` need Spark.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli import main
from tests.docs.task_archive import write_archive
from tests.documentation import docs_page

FENCE = re.compile(r"^```(?P<language>\w+) ?(?P<name>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = (
    "report-every-night", "compare-two-weeks", "read-a-report", "find-a-failed-sync", "find-quarantined-records",
    "query-in-a-notebook", "move-to-spark", "silence-an-alert", "choose-a-sensitivity", "add-a-filter",
    "load-queue-dumps",
)  # fmt: skip
WITH_SPARK = (
    "report-every-night",
    "find-quarantined-records",
    "query-in-a-notebook",
    "move-to-spark",
    "load-queue-dumps",
)
COMMANDS = {"sh": ["bash", "-eo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
MAX_LINES = 90
BEFORE = {
    "find-quarantined-records": "echo {} | balog topics publish failed_events - --topics local:topics --payload a=1",
    "add-a-filter": """echo '{"amount": 250}' | balog topics publish orders - --topics local:topics --payload a=1""",
    "silence-an-alert": "echo {} | balog topics publish singer-events - --topics local:topics --payload a=1",
    "choose-a-sensitivity": """cat archive/*/*.jsonl | grep -v '"id":$' > history.jsonl""",
}
"""What a page needs beside the archive."""


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    for found in FENCE.finditer(docs_page(f"{page}.md").read_text(encoding="utf-8")):
        yield found["language"], found["name"], found["text"]


def run(language: str, text: str, folder: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "200", "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(
        [*COMMANDS[language], text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}{done.stdout}{done.stderr}"
    return done.stdout


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_page(page: str, folder: Path) -> None:
    """Run the blocks of a page in order, and compare what it shows of their output."""
    printed = ""
    for language, name, text in blocks(page):
        if name == "spark":
            printed = ""
        elif name:
            write(folder / name, text)
        elif language in COMMANDS:
            printed = run(language, text, folder)
        elif language == "text" and printed:
            shown = "".join(r"^.*?" if line == "…" else pattern(line) for line in text.splitlines())
            assert re.search(shown, printed, re.MULTILINE | re.DOTALL), f"{text}is not in\n{printed}"
            printed = ""


def pattern(line: str) -> str:
    """Return the pattern of a line in which … is any text, and spaces around it do not count."""
    return r"^[ ]*" + "[^\n]*".join(re.escape(part.strip()) for part in line.split("…")) + "[^\n]*\n"


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_on_an_archive_run(page: str, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    write_archive(tmp_path)
    if page in BEFORE:
        run("sh", BEFORE[page], tmp_path)
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_one_task_is_about_a_screen(page: str) -> None:
    assert len(docs_page(f"{page}.md").read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.spark
def test_the_blocks_that_need_spark_run(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that several pages share run once, and commands use the session of the tests, since Java starts slowly."""
    write_archive(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    ran = set()
    for language, name, text in (block for page in WITH_SPARK for block in blocks(page)):
        if name not in ("", "spark"):
            write(tmp_path / name, text)
        if name == "spark" and language == "python":
            exec(compile(text.replace('"archive"', repr(str(tmp_path / "archive"))), "page", "exec"), {})
        for line in text.splitlines() if (language, name) == ("sh", "spark") else ():
            if line in ran:
                continue
            ran.add(line)
            line, _, target = line.partition(" > ")
            if line.startswith("balog "):
                done = CliRunner().invoke(main, shlex.split(line)[1:])
                assert done.exit_code == 0, f"{line}\n{done.output}{done.exception}"
                Path(target or "printed").write_text(done.stdout, encoding="utf-8")
            else:
                run("sh", line, tmp_path)
    assert len(ran) >= 6
