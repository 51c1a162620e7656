import json
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")

import duckdb
import pyarrow as pa

from balog.analytics.duckdb_engine import DuckDBEngine
from balog.analytics.embedded.database import open_database
from balog.analytics.embedded.statement import ask
from balog.analytics.embedded.stored_tables import StoredTables
from balog.analytics.querying.policy import check
from balog.analytics.reading.parser import borrow_parser
from balog.errors import BalogError, ConfigError

HOSTILE = [
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_parquet('{other}')",
    "SELECT * FROM read_parquet('https://example.com/a.parquet')",
    "SELECT * FROM 's3://bucket/a.parquet'",
    "COPY (SELECT 1) TO '{secret}.copy'",
    "COPY log TO '{secret}.copy'",
    "EXPORT DATABASE '{secret}.folder'",
    "ATTACH '{secret}.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{secret}'",
    "SET enable_external_access = true",
    "SET allowed_paths = ['{secret}']",
    "SET memory_limit = '100GB'",
    "RESET lock_configuration",
    "PRAGMA temp_directory='/'",
    "SET temp_directory = '/'",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "SELECT getenv('HOME')",
    "IMPORT DATABASE '{secret}'",
    "SELECT * FROM sniff_csv('{secret}')",
    "CREATE VIEW v AS SELECT * FROM read_text('{secret}'); SELECT * FROM v",
]
"""Statements that reach for something outside; ``secret`` and ``other`` are files that exist."""


def write_tables(folder: Path, rows: int = 3, staged: bool = False) -> StoredTables:
    """Write a folder as ``balog load`` does, without Spark."""
    path = "date=2026-11-20/part-0.parquet"
    home = folder / "_balog" / "staging" / "batch-1" / "log" if staged else folder / "log"
    (home / path).parent.mkdir(parents=True)
    with duckdb.connect() as connection:
        moment = "TIMESTAMPTZ '2026-11-20 08:00:00+02'"
        sql = f"SELECT range AS n, 'line ' || range AS message, {moment} AS timestamp FROM range({rows})"
        connection.execute(f"COPY ({sql}) TO '{home / path}' (FORMAT parquet)")
    kinds = {"n": "long", "message": "string", "timestamp": "timestamp", "later": "double"}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    added = [{"path": path, "rows": rows, "size": 1000}]
    commit = {
        "batch": "batch-1",
        "at": "2026-11-20T09:00:00Z",
        "tables": {"log": {"columns": json.dumps({"fields": fields}), "added": added}},
    }
    (folder / "_balog" / "log").mkdir(parents=True)
    (folder / "_balog" / "log" / "0000000001.json").write_text(json.dumps(commit))
    return StoredTables(str(folder))


def with_files(folder: Path, sql: str) -> str:
    """Return a hostile statement about files that exist."""
    secret, other = folder / "secret.csv", folder / "other" / "log" / "date=2026-11-20" / "part-0.parquet"
    secret.write_text("password\nhunter2\n")
    write_tables(folder / "other")
    return sql.format(secret=secret, other=other)


def rows(tables: StoredTables, sql: str, **limits: Any) -> list[Any]:
    question = ask(tables, check(sql, tables.names()).query)
    with question.rows(**limits) as found:
        return [list(json.loads(row).values()) for row in found]


def test_a_table_has_its_columns_in_utc_and_null_where_an_older_file_lacks_one(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    found = rows(tables, "SELECT * FROM log WHERE n = 1")
    assert found == [[1, "line 1", "2026-11-20T06:00:00.000000Z", None, "2026-11-20"]]


def test_files_of_a_commit_that_were_not_moved_yet_are_read(tmp_path: Path) -> None:
    assert rows(write_tables(tmp_path, staged=True), "SELECT count(*) FROM log") == [[3]]


@pytest.mark.parametrize("sql", HOSTILE)
def test_the_database_itself_opens_nothing_else_and_keeps_its_settings(tmp_path: Path, sql: str) -> None:
    """Statements that no policy has looked at: the database is closed on its own."""
    sql = with_files(tmp_path, sql)
    tables = write_tables(tmp_path / "tables")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BalogError), open_database(tables, ["log"]) as database:
        database.execute(sql).fetchall()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("sql", HOSTILE)
def test_the_database_of_questions_is_closed_as_well(tmp_path: Path, sql: str) -> None:
    """Its own questions are fixed texts; if one were not, it could still read nothing else."""
    sql = with_files(tmp_path, sql)
    files = write_tables(tmp_path / "tables").files("log")
    before = sorted(tmp_path.rglob("*"))
    with DuckDBEngine(files) as engine:
        log = engine.parquet(files, "n BIGINT, message VARCHAR")
        assert len(engine.sql("SELECT n, message FROM {log}", log=log).rows()) == 3
        engine.connection.execute(f"CREATE VIEW log AS FROM {log.name}")
        with pytest.raises(duckdb.Error):
            engine.connection.execute(sql).fetchall()
        with pytest.raises(duckdb.Error):
            engine.parquet([str(tmp_path / "other" / "log" / "date=2026-11-20" / "part-0.parquet")], "n BIGINT")
        assert engine.sql("SELECT count(*) AS n FROM {log}", log=log).rows() == [{"n": 3}]
    assert sorted(tmp_path.rglob("*")) == before


def test_no_database_prints_its_progress_between_the_rows(tmp_path: Path) -> None:
    """DuckDB prints a bar on stdout, also into a pipe, when a statement takes two seconds."""
    asked = "SELECT value FROM duckdb_settings() WHERE name = 'enable_progress_bar'"
    with DuckDBEngine() as engine:
        assert engine.connection.execute(asked).fetchall() == [("false",)]
    with open_database(write_tables(tmp_path), ["log"]) as database:
        assert database.execute(asked).fetchall() == [("false",)]
    with borrow_parser() as parser:
        assert parser.ask(asked, pa.table({"n": [1]})).to_pylist() == [{"value": "false"}]


def test_no_database_reads_variables_of_python(tmp_path: Path) -> None:
    rows_of_python = pa.table({"password": ["hunter2"]})
    with DuckDBEngine() as engine, pytest.raises(duckdb.Error, match="rows_of_python"):
        engine.connection.execute("FROM rows_of_python").fetchall()
    assert rows_of_python.num_rows == 1


def test_a_database_of_questions_leaves_no_folder_behind() -> None:
    before = set(Path(tempfile.gettempdir()).glob("balog-query-*"))
    engine = DuckDBEngine()
    (folder,) = set(Path(tempfile.gettempdir()).glob("balog-query-*")) - before
    assert folder.stat().st_mode & 0o777 == 0o700
    del engine
    assert not folder.exists()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM `/etc/passwd`",
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM parquet.`/tmp/a.parquet`",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM duckdb_secrets",
        "SELECT getenv('HOME') AS home",
        "SELECT current_setting('memory_limit') AS m",
        "SELECT read_text('/etc/passwd') AS t",
        "SELECT error('x') AS e",
        "SELECT message FROM log WHERE \"read_text('/etc/passwd')\" = 1 OR getenv('A') = '1'",
        "SELECT nextval('s') AS n",
        "COPY log TO '/tmp/x'",
        "ATTACH '/tmp/x'",
        "INSTALL httpfs",
        "SET threads = 100",
        "SELECT 1; SELECT 2",
        "CREATE TABLE x AS SELECT 1",
    ],
)
def test_statements_that_reach_beyond_the_tables_are_refused_before_the_database_opens(
    tmp_path: Path, sql: str
) -> None:
    tables = write_tables(tmp_path)
    with pytest.raises(ConfigError) as refused:
        rows(tables, sql)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ['a"b', "a`b", "x; DROP", "c0", "\x00"])
def test_hostile_names_and_texts_stay_names_and_texts(tmp_path: Path, name: str) -> None:
    tables = write_tables(tmp_path)
    literal = name.replace("'", "''").replace("\x00", "")
    quoted = name.replace("`", "``")
    assert rows(tables, f"SELECT '{literal}' AS `{quoted}` FROM log LIMIT 1") == [[name.replace("\x00", "")]]


def test_a_query_that_takes_too_long_ends_with_one_line(tmp_path: Path) -> None:
    tables = write_tables(tmp_path, rows=100_000)
    with pytest.raises(BalogError, match=r"longer than 0 s; run it with --engine spark$"):
        rows(
            tables, "SELECT count(*) FROM log a JOIN log b ON a.n < b.n + b.n WHERE a.message < b.message", seconds=0.4
        )
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer) and thread.is_alive()]


def test_unknown_names_are_reported_with_the_likely_one(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    with pytest.raises(ConfigError, match=r"^SQL: no column 'mesage', line 1, column 8; did you mean 'message'\?$"):
        rows(tables, "SELECT mesage FROM log")
    with pytest.raises(ConfigError, match=r"^SQL: no table 'logg', line 1, column 15; did you mean 'log'\?$"):
        rows(tables, "SELECT * FROM logg")


def test_show_tables_like(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    assert rows(tables, "SHOW TABLES LIKE 'l*'") == [["", "log", True]]
    assert rows(tables, "SHOW TABLES LIKE 'x*|y'") == []


def test_overflow_fails_and_is_not_another_number(tmp_path: Path) -> None:
    with pytest.raises(BalogError, match=r"(?i)overflow"):
        rows(write_tables(tmp_path), "SELECT 9223372036854775807 + n AS x FROM log")


def test_a_time_that_python_has_no_value_for_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"10000-01-31 .* is outside of the years 1 to 9999"):
        rows(write_tables(tmp_path), "SELECT TIMESTAMP '9999-12-31 23:59:59' + INTERVAL 1 MONTH AS x FROM log")
