"""The pages of ``docs/``, found by their names, and their blocks, run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
_BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def docs_page(name: str) -> Path:
    """Return the page with this file name, in whichever folder of ``docs/`` it is."""
    (found,) = DOCS.rglob(name)
    return found


def run_page(name: str, folder: Path) -> list[str]:
    """Write the named blocks of a page as files, run its ``sh`` blocks in order, and return what each printed.

    Blocks of ``text``, ``json`` and ``mermaid`` without a name are left alone.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    printed = []
    for block in _BLOCK.finditer(docs_page(name).read_text(encoding="utf-8")):
        if block["name"]:
            path = folder / block["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
        elif block["language"] == "sh":
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", block["text"]],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, f"{block['text']}\n{done.stdout}\n{done.stderr}"
            printed.append(done.stdout)
    return printed
