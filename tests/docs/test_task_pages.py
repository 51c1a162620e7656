"""The blocks of each page of one task run as they are, in a folder of their own, and print what the page shows."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from balog.cli import main
from tests.documentation import (
    DOCS,
    Block,
    assert_is_in,
    blocks,
    docs_page,
    is_command,
    run_block,
    run_task,
    screen_lines,
)

PAGES = (
    "report-every-night", "compare-two-weeks", "read-a-report", "find-a-failed-sync", "find-quarantined-records",
    "query-in-a-notebook", "move-to-spark", "silence-an-alert", "choose-a-sensitivity", "add-a-filter",
    "load-queue-dumps", "alerts", "watch", "find-the-slow-side", "clickhouse",
    "report-handler-errors", "trace-handlers", "run-handlers-in-python", "upgrade-a-payload-type", "store",
    "keep-state",
)  # fmt: skip
"""Pages without another test that runs them."""

WITH_SPARK = (
    "report-every-night",
    "find-quarantined-records",
    "query-in-a-notebook",
    "move-to-spark",
    "load-queue-dumps",
    "upgrade-a-payload-type",
)

MAKES_DATA = ("examples/shop_archive.py", "balog topics publish", "balog schema register")

MAX_LINES = 62


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("sink_packages")
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    run_task(f"{page}.md", tmp_path)


SHOWN = sorted(
    {
        (page.stem, line)
        for page in (DOCS / "how-to").glob("*.md")
        for block in blocks(page.read_text(encoding="utf-8"))
        if (block.language, block.name) in (("text", ""), ("sh", "no-run"))
        for line in block.text.splitlines()
        if is_command(line)
    }
)
"""Commands that a page shows and no test can run, because they need a cluster, a server or a cloud."""


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=[page for page, _ in SHOWN])
def test_a_command_that_a_page_only_shows_is_taken(page: str, line: str) -> None:
    command: Any = main
    words = shlex.split(re.split(r"\s{3,}| [|<>] ", line)[0])[1:]
    while isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(click.Context(command), name)
        if found is None:  # a file, for the default command of the group
            name, words = "run", [name, *words]
            found = command.get_command(click.Context(command), name)
        assert found is not None, line
        command = found
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in words if word.startswith("--") and word != "--"} <= options, line


@pytest.mark.parametrize("page", sorted((DOCS / "how-to").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_one_task_is_about_a_screen(page: Path) -> None:
    assert screen_lines(page.read_text(encoding="utf-8")) <= MAX_LINES


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_a_page_opens_with_its_readers(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert page.name == "index.md" or page.parent.name == "decisions" or text.splitlines()[2].startswith("For ")
    assert "balog-events[" not in text, "the package is not on PyPI"


@pytest.mark.spark
def test_the_blocks_that_need_spark_run(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that several pages share run once, and commands use the session of the tests, since Java starts slowly."""
    (tmp_path / "examples").symlink_to(Path(__file__).parents[2] / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    ran: dict[str, str] = {}
    for page in WITH_SPARK:
        printed = ""
        for block in blocks(docs_page(f"{page}.md").read_text(encoding="utf-8")):
            if block.name not in ("", "spark", "no-run"):
                path = tmp_path / block.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            elif (block.name, block.language) == ("spark", "python"):
                source = block.text.replace('"archive"', repr(str(tmp_path / "archive")))
                exec(compile(source, page, "exec"), {})
            elif block.name == "spark":
                for line in block.text.splitlines():
                    if line not in ran:
                        ran[line] = _run_line(line, tmp_path)
                printed = "".join(ran[line] for line in block.text.splitlines())
            elif any(word in block.text for word in MAKES_DATA) and block.text not in ran:
                ran[block.text] = run_block(block, tmp_path)
            elif block.language == "text" and printed and not is_command(block.text):
                assert_is_in(block.text, printed)
                printed = ""
    assert len(ran) >= 6


def _run_line(line: str, folder: Path) -> str:
    """Run a line, with paths that do not depend on the folder that Spark's workers started in."""
    if not line.startswith("balog "):
        return run_block(Block("sh", "", 0, line), folder)
    line, _, target = line.replace("local:topics", f"local:{folder}/topics").partition(" > ")
    done = CliRunner().invoke(main, shlex.split(line)[1:])
    assert done.exit_code == 0, f"{line}\n{done.output}{done.exception}"
    if target:
        Path(target).write_text(done.stdout, encoding="utf-8")
    return done.output
