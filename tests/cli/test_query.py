"""``balog query`` as it is run."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.cli.query import command
from balog.errors import ConfigError

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def place(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of three events."""
    from balog.analytics.tables import open_store
    from balog.analytics.tables.loader import load

    folder = tmp_path_factory.mktemp("query")
    lines = []
    for number in range(3):
        header = {"id": f"LG{number:022d}", "channel": "tap_x.log", "timestamp": f"2026-11-20T07:0{number}:00Z",
                  "level": "INFO", "composition": False,
                  "context": {"application": "tap-x", "run_id": "r1"}}  # fmt: skip
        payload = {"cls_type": "log", "message": f"n° {number}, done"}
        lines.append(json.dumps({"schema": "1.0.0", "header": header, "payload": payload}))
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    store = open_store(spark, str(folder / "tables"))
    with store.writing():
        load(spark, store, [str(folder / "a.jsonl")])
    return folder / "tables"


def test_rows_go_to_stdout_and_how_many_to_stderr(place: Path, tmp_path: Path) -> None:
    program = "from balog.cli import main; main(prog_name='balog')"
    sql = "SELECT message, timestamp -- of each\nFROM log ORDER BY timestamp DESC"
    asked = [sys.executable, "-c", program, "query", "-", "--tables", str(place), "--format", "csv", "--limit", "2"]
    environment = {**os.environ, "TZ": "America/New_York"}
    done = subprocess.run(asked, input=sql, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert list(csv.reader(io.StringIO(done.stdout))) == [
        ["message", "timestamp"],
        ["n° 2, done", "2026-11-20T07:02:00.000000Z"],
        ["n° 1, done", "2026-11-20T07:01:00.000000Z"],
    ]
    assert done.stderr.startswith("balog query: 2 rows in ")
    assert done.stderr.endswith("s; there are more, give a larger --limit\n")


def test_what_fails_while_it_is_computed_is_one_line(place: Path, tmp_path: Path) -> None:
    program = "from balog.cli import main; main(prog_name='balog')"
    asked = [sys.executable, "-c", program, "query", "SELECT 1 / (length(id) - 24) FROM events", "--tables", str(place)]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "balog query: SQL: Division by zero, line 1, column 8\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["DROP TABLE events"], "SQL: DROP is not a query"),
        (["SELECT 1", "--format", "parquet"], "give --output"),
        (["SELECT 1", "--format", "parquet", "--output", "a", "--master", "spark://h:1"], "cluster's machines"),
        (["SELECT 1", "--output", "no/where.csv"], "its folder does not exist"),
        (["SELECT 1", "--tables", "nowhere"], "nowhere: there are no tables"),
    ],
)
def test_wrong_use_is_refused_before_spark_starts(tmp_path: Path, words: list[str], said: str) -> None:
    done = CliRunner().invoke(command, ["--tables", str(tmp_path), *words])
    assert isinstance(done.exception, ConfigError)
    assert said in str(done.exception)
