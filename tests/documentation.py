"""The pages of ``docs/``, found by their names, and the fenced blocks of a page, run as a reader would paste them."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main
from tests import named_extras
from tests.ci_scripts import ci_script
from tests.programs import environment_without, run_program

DOCS = Path(__file__).parents[1] / "docs"
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


IN_PROCESS = ("report", "query", "watch", "check", "schema", "test")


def docs_page(name: str) -> Path:
    """Return the page with this file name, in whichever folder of ``docs/`` it is."""
    (found,) = DOCS.rglob(name)
    return found


def page_text(*names: str) -> str:
    """Return the text of pages."""
    return "".join(docs_page(f"{name}.md").read_text(encoding="utf-8") for name in names)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it is to be written to, its first line, its text, the page's text."""

    language: str
    name: str
    line: int
    text: str
    page: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        return f"line-{self.line}-{self.name or self.language}"


def blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(markdown):
        language, _, name = match["info"].strip().partition(" ")
        found.append(Block(language, name.strip(), markdown.count("\n", 0, match.start()) + 2, match["text"], markdown))
    return found


def reader_environment(page: str = "") -> dict[str, str]:
    """Return the environment of a page's reader: this environment's programs, the extras that the page names.

    Without a page, all extras are there.
    """
    environment = environment_without("BALOG_")
    path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    return {**environment, **named_extras.environment(page), "PATH": path, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def run_page(name: str, folder: Path) -> list[str]:
    """Write the named blocks of a page as files, run its ``sh`` blocks in order, and return what each printed.

    Each block has a shell of its own. Other blocks without a name are left alone.
    """
    printed = []
    for block in blocks(docs_page(name).read_text(encoding="utf-8")):
        if block.name:
            path = folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            shell = ["bash", "-eo", "pipefail", "-c", block.text]
            printed.append(run_program(*shell, cwd=folder, env=reader_environment(block.page)).stdout)
    return printed


def run_task(name: str, folder: Path, url: str = "https://api.example.com", compares: bool = True) -> list[str]:
    """Run the blocks of a how-to page in order, and compare the output that the page shows.

    A block is run or written by its info string: its language, and a name, which is a file to write. ``sh`` and
    ``python`` without a name run, in the folder, which has the clone's ``examples`` and ``consumers``. A ``text`` after
    a block that ran shows its output: lines of stdout and stderr, in this order. ``…`` is any text. Blocks with the
    name ``spark`` or ``no-run`` are left out, and a ``text`` that begins with a command.

    Args:
        url: stands in the place of https://api.example.com.
        compares: every ``text`` shows the output of the block before it.

    Returns:
        What each block printed.
    """
    for part in ("examples", "consumers"):
        if not (folder / part).exists():
            (folder / part).symlink_to(DOCS.parent / part)
    printed, shown, page = [], True, docs_page(name)
    for block in blocks(page.read_text(encoding="utf-8").replace("https://api.example.com", url)):
        if page.parent.name == "reference":  # only how-to pages say what to install
            block = replace(block, page="")
        if block.name in ("spark", "no-run"):
            shown = True
        elif block.name:
            path = folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language in ("sh", "python"):
            printed.append(run_block(block, folder))
            shown = False
        elif block.language == "text" and compares and not shown and not is_command(block.text):
            assert_is_in(block.text, printed[-1])
            shown = True
    return printed


def assert_is_in(shown: str, printed: str) -> None:
    """Assert that lines that a page shows are in what was printed, in this order."""
    lines = "".join(r"^.*?" if line == "…" else _line_pattern(line) for line in shown.splitlines())
    assert re.search(lines, printed, re.MULTILINE | re.DOTALL), f"{shown}is not in\n{printed}"


def is_command(line: str) -> bool:
    """Return whether a line is a command of balog, and not a line that balog prints (``balog watch: …``)."""
    return re.match(r"balog (?![a-z ]+:)[a-z]+ ", line) is not None


def _line_pattern(line: str) -> str:
    """Return the pattern of a line in which … is any text, and spaces around it do not count."""
    return r"^[ ]*" + "[^\n]*".join(re.escape(part.strip()) for part in line.split("…")) + "[^\n]*\n"


def run_block(block: Block, folder: Path) -> str:
    """Run a block and return what it printed.

    A block of plain commands that only read (``IN_PROCESS``) runs in this process, which saves the start of Python.
    """
    environment = {**reader_environment(block.page), "COLUMNS": "200", "XDG_STATE_HOME": str(folder / "state")}
    commands = [_plain_command(line) for line in block.text.splitlines()] if block.language == "sh" else [None]
    if all(commands):
        _check_extras(block)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            done = [CliRunner(env=environment).invoke(main, words) for words in commands]
        output, codes = "".join(each.output for each in done), [each.exit_code for each in done]
    else:
        start = ["bash", "-eo", "pipefail", "-c"] if block.language == "sh" else [sys.executable, "-c"]
        ran = subprocess.run(
            [*start, block.text],
            cwd=folder,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        output, codes = ran.stdout, [ran.returncode]
    assert not any(codes), f"{block.text}{output}"
    return output


def _check_extras(block: Block) -> None:
    """Check that a page names the extras of commands in this process, which has all of them."""
    absent = named_extras.hidden(block.page)
    assert "duckdb" not in absent or not re.search("^balog (report|query)", block.text, re.MULTILINE), block
    assert "yaml" not in absent or not re.search(r"\.ya?ml\b", block.text), block


def _plain_command(line: str) -> list[str] | None:
    """Return the arguments of a line that is one command of ``IN_PROCESS``, without operators of the shell."""
    if not line.startswith("balog ") or re.search(r"[$`\\#]", line):
        return None
    words = list(shlex.shlex(line, posix=True, punctuation_chars=True))
    operators = any(set(word) <= set("();<>|&") for word in words)
    return None if operators or words[1] not in IN_PROCESS else shlex.split(line)[1:]


def paste(page: list[Block], folder: Path) -> dict[Block, str]:
    """Save and run the blocks of a page in one terminal, in order.

    A named block is saved as a file. The ``sh`` blocks run in one shell, so ``cd`` and background jobs last. The shell
    stops at the first command that fails.

    Returns:
        What each ``sh`` block printed, on stdout and stderr together.

    Raises:
        AssertionError: a command failed.
    """
    script = ["exec 2>&1"]
    for number, block in enumerate(page):
        if block.name:
            script.append(
                f"mkdir -p $(dirname {block.name})\ncat > {block.name} <<'END OF FILE'\n{block.text}END OF FILE"
            )
        elif block.language == "sh":
            script.append(f"{block.text}printf '\\n\\x1e{number}\\n'")
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(script)],
        cwd=folder,
        env=reader_environment(page[0].page),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=500,
    )
    *parts, last = re.split(r"\n\x1e(\d+)\n", done.stdout)
    assert done.returncode == 0, f"a command ended with {done.returncode}:\n{last}"
    return {page[int(number)]: text for text, number in zip(parts[::2], parts[1::2], strict=True)}


def screen_lines(page: str) -> int:
    """Return how many lines a page has, without the lines that are titles of blocks on the site."""
    return len(ci_script("docs/github_markdown").CAPTION.sub("", page).splitlines())


def matches(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed; ``…`` in the page stands for any text. Line ends are stripped."""
    lines = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    pattern = ".*".join(re.escape(part) for part in shown.strip("\n").split("…"))
    return re.fullmatch(pattern, lines, re.DOTALL) is not None
