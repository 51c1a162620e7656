"""What the pages about asking show is taken: each command line by its command, each piece of Python by its compiler."""

import importlib
import re
import shlex

import pytest

from balog.cli import load, query, report
from tests.documentation import docs_page

PAGES = ("reading", "tables", "rollups", "report", "query", "scaling", "table-columns", "table-catalogs")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = [
    (page, *block) for page in PAGES for block in FENCE.findall(docs_page(f"{page}.md").read_text(encoding="utf-8"))
]
COMMANDS = {"load": load.command, "query": query.command, "report": report.command}
LINES = [
    re.split(r"\s{3,}| < ", line)[0]
    for _, kind, text in BLOCKS
    for line in text.splitlines()
    if kind in ("text", "sh") and re.match(rf"balog ({'|'.join(COMMANDS)}) ", line)
]
PYTHON = [(page, text) for page, kind, text in BLOCKS if kind == "python"]


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_taken(line: str) -> None:
    _, name, *words = shlex.split(line)
    COMMANDS[name].make_context(name, words)


@pytest.mark.parametrize(("page", "text"), PYTHON, ids=[page for page, _ in PYTHON])
def test_python_compiles_and_what_it_imports_is_there(page: str, text: str) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    compile(text, f"docs/{page}.md", "exec")
    for module, names in re.findall(r"^from (balog[\w.]*) import ([\w, ]+)$", text, re.MULTILINE):
        for name in names.split(", "):
            if not hasattr(importlib.import_module(module), name):
                importlib.import_module(f"{module}.{name}")


def test_each_command_is_shown() -> None:
    assert {line.split()[1] for line in LINES} == set(COMMANDS)
