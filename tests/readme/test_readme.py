"""What the README shows runs as it is written: its fenced blocks, in order, in one copy of the checkout.

A block's info string says what happens with it. ``sh``: run by bash, stopping at the first command that fails. One with
``||`` shows what a failure does, so it is run as in a reader's shell, where only the last program of a pipe counts.
``python``: run as a script. ``python NAME``, ``json NAME`` and ``yaml NAME``: written to the file NAME, for the blocks
after it. ``text``: what the block before it prints on stdout; ``…`` stands for any text. A ``sh`` block that begins
with ``make`` is left to CI and to the demo's own test. The blocks after ``cd FOLDER`` run in that folder.
"""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.documentation import Block, blocks, matches, reader_environment
from tests.programs import run_program

README = Path(__file__).parents[2] / "README.md"
LANGUAGES = {"sh", "python", "json", "yaml", "text"}


def runs(block: Block) -> bool:
    return block.language != "text" and not (block.language == "sh" and block.text.startswith("make"))


IN_README = blocks(README.read_text(encoding="utf-8")) if README.exists() else []


def run(block: Block, folder: Path) -> subprocess.CompletedProcess[str] | None:
    """Do what the block's info string asks for; None when it only had to be written."""
    if block.name:
        path = folder / block.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        return None
    shell = ["bash", "-e", "-c"] if "||" in block.text else ["bash", "-eo", "pipefail", "-c"]
    commands = {"sh": shell, "python": [sys.executable, "-c"]}
    command = [*commands[block.language], block.text]
    return run_program(*command, cwd=folder, env=reader_environment(block.page), code=None)


def folder_of(block: Block, checkout: Path) -> Path:
    """Return the folder in which a reader is at a block."""
    before = "".join(each.text for each in IN_README if each.language == "sh" and each.line < block.line)
    return checkout.joinpath(*re.findall(r"\bcd (\S+)$", before, re.MULTILINE))


@pytest.fixture(scope="module")
def installed(checkout: Path) -> Path:
    """The checkout after ``make install``, which git manages."""
    (checkout / ".venv").symlink_to(sys.prefix)
    git(checkout, "init", "--quiet")
    git(checkout, "add", "--all")
    return checkout


def git(folder: Path, *words: str) -> str:
    return run_program("git", *words, cwd=folder).stdout


def test_the_readme_shows_something_that_runs() -> None:
    assert any(runs(block) for block in IN_README)


@pytest.mark.parametrize("block", IN_README, ids=str)
def test_a_block_of_the_readme_says_what_it_is(block: Block) -> None:
    assert block.language in LANGUAGES
    assert block.name or block.language not in ("json", "yaml"), "it names the file that it is: ```json broker.json"


@pytest.mark.parametrize("block", [block for block in IN_README if runs(block)], ids=str)
def test_a_block_of_the_readme_runs(block: Block, installed: Path) -> None:
    done = run(block, folder_of(block, installed))
    if done is not None:
        assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
        shown = dict(pairwise(IN_README)).get(block)
        if shown is not None and shown.language == "text":
            assert matches(shown.text, done.stdout)


def test_the_readme_leaves_nothing_that_git_would_add(installed: Path) -> None:
    assert (installed / "tour" / "report.html").exists()
    assert git(installed, "status", "--porcelain", "--untracked-files=all").count("?? ") == 0


def test_blocks_are_found_with_their_language_file_and_line() -> None:
    markdown = "# a\n\n```sh\ntrue\n```\n\n```json  x/b.json\n{}\n```\n"
    assert blocks(markdown) == [Block("sh", "", 4, "true\n"), Block("json", "x/b.json", 8, "{}\n")]


def test_a_block_fails_when_any_command_of_a_pipe_does(tmp_path: Path) -> None:
    done = run(Block("sh", "", 1, "false | cat\ntrue\n"), tmp_path)
    assert done is not None
    assert done.returncode == 1


def test_a_written_module_can_be_imported_by_the_next_block(tmp_path: Path) -> None:
    assert run(Block("python", "handlers.py", 1, "ANSWER = 42\n"), tmp_path) is None
    done = run(Block("python", "", 1, "import handlers; print(handlers.ANSWER)\n"), tmp_path)
    assert done is not None
    assert done.stdout == "42\n"
