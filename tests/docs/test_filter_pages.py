"""The pages on filters and tables: documents are documents, commands are taken, numbers are the code's."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from balog_clickhouse import sink, table

from balog.service.control.validation import read_document
from tests.documentation import docs_page

FILTERS = docs_page("filters.md").read_text(encoding="utf-8")
TABLES = docs_page("clickhouse.md").read_text(encoding="utf-8")
COLUMNS = docs_page("event-tables.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[tuple[str, str, str]]:
    return re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [FILTERS, TABLES], ids=["filters", "clickhouse"])
def test_the_documents_are_documents(page: str) -> None:
    for language, name, text in blocks(page):
        if language == "json" and name != "broker.json":
            assert read_document(text.encode(), name)[1] == []


@pytest.mark.spark
def test_the_commands_on_filters_run(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said = ""
    for language, name, text in blocks(FILTERS):
        if language == "json":
            (tmp_path / name).write_text(text)
        elif language == "sh":
            run = ["sh", "-e", "-c", text]
            done = subprocess.run(
                run, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, done.stderr
            said += done.stdout
    assert said.count("2 events wanted, 2 written to") == 2
    assert list((tmp_path / "archive" / "big_orders").glob("date=*/*.jsonl.gz"))


def test_the_numbers_are_the_code_s() -> None:
    assert f"is beyond {table.MOST_COLUMNS}." in COLUMNS.replace("\n", " ")
    assert f"beyond {sink.MOST_TABLES} types" in COLUMNS
