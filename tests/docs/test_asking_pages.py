"""The Python of the pages about asking compiles, and what it imports exists."""

import importlib
import re

import pytest

from tests.documentation import docs_page

PAGES = ("reading", "tables", "rollups", "report", "query", "scaling", "table-columns", "table-catalogs")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = [
    (page, *block) for page in PAGES for block in FENCE.findall(docs_page(f"{page}.md").read_text(encoding="utf-8"))
]
PYTHON = [(page, text) for page, kind, text in BLOCKS if kind == "python"]


@pytest.mark.parametrize(("page", "text"), PYTHON, ids=[page for page, _ in PYTHON])
def test_python_compiles_and_what_it_imports_is_there(page: str, text: str) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    compile(text, f"docs/{page}.md", "exec")
    for module, names in re.findall(r"^from (balog[\w.]*) import ([\w, ]+)$", text, re.MULTILINE):
        for name in names.split(", "):
            if not hasattr(importlib.import_module(module), name):
                importlib.import_module(f"{module}.{name}")
