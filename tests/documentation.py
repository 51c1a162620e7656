"""The pages of ``docs/``, found by their names, and the fenced blocks of a page, run as a reader would paste them."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


def docs_page(name: str) -> Path:
    """Return the page with this file name, in whichever folder of ``docs/`` it is."""
    (found,) = DOCS.rglob(name)
    return found


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it is to be written to, its first line in the page, its text."""

    language: str
    name: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"line-{self.line}-{self.name or self.language}"


def blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(markdown):
        language, _, name = match["info"].strip().partition(" ")
        found.append(Block(language, name.strip(), markdown.count("\n", 0, match.start()) + 2, match["text"]))
    return found


def reader_environment() -> dict[str, str]:
    """Return the environment of a reader's terminal: this environment's programs, no settings of balog."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    return {**environment, "PATH": path, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


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
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", block.text],
                cwd=folder,
                env=reader_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
            printed.append(done.stdout)
    return printed


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
        env=reader_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=500,
    )
    *parts, last = re.split(r"\n\x1e(\d+)\n", done.stdout)
    assert done.returncode == 0, f"a command ended with {done.returncode}:\n{last}"
    return {page[int(number)]: text for text, number in zip(parts[::2], parts[1::2], strict=True)}


def matches(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed; ``…`` in the page stands for any text. Line ends are stripped."""
    lines = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    pattern = ".*".join(re.escape(part) for part in shown.strip("\n").split("…"))
    return re.fullmatch(pattern, lines, re.DOTALL) is not None
