"""``balog query`` as it is run."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.cli.query import command
from balog.common.errors import BalogError, ConfigError, redact_error
from tests.event_lines import event_line, write_lines

pytestmark = pytest.mark.spark
PROGRAM = [sys.executable, "-c", "from balog.cli import main; main(prog_name='balog')", "query"]


@pytest.fixture(scope="module")
def place(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of three events."""
    from tests.loaded_tables import load_tables

    folder = tmp_path_factory.mktemp("query")
    lines = []
    for number in range(3):
        at = datetime(2026, 11, 20, 7, number, tzinfo=timezone.utc)
        payload = {"cls_type": "log", "message": f"n° {number}, done"}
        lines.append(event_line(f"LG{number:022d}", at, payload, application="tap-x", run_id="r1"))
    write_lines(folder / "a.jsonl", lines)
    load_tables(spark, folder / "tables", [folder / "a.jsonl"])
    return folder / "tables"


def test_rows_go_to_stdout_and_how_many_to_stderr(place: Path, tmp_path: Path) -> None:
    sql = "SELECT message, timestamp -- of each\nFROM log ORDER BY timestamp DESC"
    asked = [*PROGRAM, "-", "--tables", str(place), "--format", "csv", "--limit", "2"]
    environment = {**os.environ, "TZ": "America/New_York"}
    done = subprocess.run(asked, input=sql, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert list(csv.reader(io.StringIO(done.stdout))) == [
        ["message", "timestamp"],
        ["n° 2, done", "2026-11-20T07:02:00.000000Z"],
        ["n° 1, done", "2026-11-20T07:01:00.000000Z"],
    ]
    assert done.stderr.startswith("balog query: 2 rows in ")
    assert done.stderr.endswith("s, by DuckDB; there are more, give a larger --limit\n")


def test_a_command_without_tables_and_sources_has_nothing_to_ask() -> None:
    done = CliRunner().invoke(command, ["SELECT 1"])
    assert isinstance(done.exception, ConfigError)
    assert "give --tables PLACE or --source PATH" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["DROP TABLE events", "--engine", "spark"], "SQL: DROP is not a query"),
        (["SELECT 1", "--format", "parquet"], "give --output"),
        (["SELECT 1", "--format", "parquet", "--output", "a", "--master", "local[1]"], "DuckDB writes it"),
        (["SELECT 1", "--output", "no/where.csv"], "its folder does not exist"),
        (["SELECT 1", "--tables", "nowhere"], "nowhere: there are no tables"),
        (["SELECT 1 FROM balog.`/etc/passwd`", "--source", "dumps", "--engine", "spark"], "no source '/etc/passwd'"),
        (['SELECT 1 FROM balog."/etc/passwd"', "--source", "dumps"], "--source PATH allows reading one"),
        (["SELECT 1", "--engine", "duckdb", "--master", "local[1]"], "--master needs Spark"),
        (["SELECT '\udcff'"], "SQL: not UTF-8"),
    ],
)
def test_wrong_use_is_refused_before_spark_starts(tmp_path: Path, words: list[str], said: str) -> None:
    asked = [*words] if "--source" in words else ["--tables", str(tmp_path), *words]
    done = CliRunner().invoke(command, asked, input=b"\xff")
    assert isinstance(done.exception, ConfigError)
    assert said in redact_error(str(done.exception))


def answer(place: Path, *words: str) -> str:
    done = CliRunner().invoke(command, ["--tables", str(place), "--format", "csv", *words])
    assert done.exception is None, done.exception
    return done.stdout


def test_a_small_table_is_answered_without_spark(place: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from balog.cli import main\n"
        "try: main(prog_name='balog')\n"
        "finally: print(sorted(name for name in sys.modules if name in ('pyspark', 'py4j', 'pandas')))"
    )
    asked = [sys.executable, "-c", program, "query", "SELECT count(*) AS n FROM log", "--tables", str(place)]
    done = subprocess.run([*asked, "--format", "csv"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "n\n3\n[]\n"


def test_formats_files_and_limits_are_those_of_spark(place: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    sql = "SELECT id, timestamp, date FROM log ORDER BY id"
    lines = answer(place, sql, "--format", "jsonl", "--limit", "1").splitlines()
    assert [list(json.loads(line)) for line in lines if line.startswith("{")] == [["id", "timestamp", "date"]]
    answer(place, sql, "--format", "parquet", "--output", str(tmp_path / "a.parquet"))
    table = pq.read_table(tmp_path / "a.parquet")
    assert [str(kind) for kind in table.schema.types] == ["string", "timestamp[us, tz=UTC]", "date32[day]"]
    assert table.num_rows == 3
    asked = ["--tables", str(place), "--output", str(tmp_path / "some"), "--format"]
    for number, form in ((0, "csv"), (0, "parquet"), (2, "parquet")):
        done = CliRunner().invoke(command, [*asked, form, "--limit", str(number), sql])
        assert re.search(f": {number} rows in .*there are more", done.stderr)
    assert pq.read_table(tmp_path / "some").num_rows == 2
    for wrong in ("INTERVAL 1 DAY", "MAP {}", "CASE WHEN range > 290_000 THEN error('a') END"):
        with pytest.raises(BalogError, match=r"^SQL: .+\Z"):
            CliRunner().invoke(
                command, [*asked, "parquet", f"FROM range(300_000) SELECT {wrong}"], catch_exceptions=False
            )
    answer(place, sql, "--output", str(tmp_path / "a.csv"))
    assert (tmp_path / "a.csv").read_text().count("\n") == 4


def test_raw_events_are_answered_without_tables(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dumps").symlink_to(place.parent)
    sql = "SELECT level, count(*) AS n FROM balog.dumps GROUP BY ALL"
    done = CliRunner().invoke(command, [sql, "--source", "dumps", "--format", "csv", "--engine", "duckdb"])
    assert (done.exit_code, done.stdout) == (0, "level,n\nINFO,3\n"), done.stderr


def test_a_catalog_and_a_cluster_are_spark_s(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("balog.cli.query._answer_on_spark", lambda query, where: asked.append(query.text) or (0, False))
    for words in (["--tables", "hive:shop?location=shop"], ["--tables", str(place), "--master", "local[1]"],
                  ["--tables", str(place), "--engine", "spark"]):  # fmt: skip
        done = CliRunner().invoke(command, [*words, "SELECT hash(id) AS h FROM log"], catch_exceptions=False)
        assert re.search(r"0 rows in [\d.]+ s, by Spark\n$", done.stderr)
    assert asked == ["SELECT hash(id) AS h FROM log"] * 3


def test_an_internal_error_of_duckdb_names_spark(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    def fails(*_: Any) -> Any:
        raise duckdb.InternalException("INTERNAL Error: a vector")

    monkeypatch.setattr("balog.analytics.embedded.database._by_schema", fails)
    done = CliRunner().invoke(command, ["--tables", str(place), "SELECT id FROM log"])
    assert isinstance(done.exception, BalogError)
    assert str(done.exception) == "SQL: DuckDB failed with an internal error; run it with --engine spark"
