import json
import re
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")

import duckdb
import pyarrow as pa

from balog.analytics.duckdb_engine import DuckDBEngine
from balog.analytics.embedded.database import ask, open_database
from balog.analytics.querying.spark_allowed_statements import check
from balog.analytics.reading.parser import borrow_parser
from balog.analytics.tables.local import StoredTables
from balog.common.errors import BalogError, ConfigError

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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables in ``tables``; beside them, files that no statement may reach."""
    folder = tmp_path_factory.mktemp("closed")
    (folder / "secret.csv").write_text("password\nhunter2\n")
    write_tables(folder / "other")
    write_tables(folder / "tables")
    return folder


def with_files(folder: Path, sql: str) -> str:
    """Return a hostile statement about files that exist."""
    other = folder / "other" / "log" / "date=2026-11-20" / "part-0.parquet"
    return sql.format(secret=folder / "secret.csv", other=other)


def rows(tables: StoredTables, sql: str, **limits: Any) -> list[Any]:
    with ask(tables, sql, **limits) as answer:
        return [list(json.loads(row).values()) for row in answer.rows()]


def test_a_table_has_its_columns_in_utc_and_null_where_an_older_file_lacks_one(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    found = rows(tables, "SELECT * FROM log WHERE n = 1")
    assert found == [[1, "line 1", "2026-11-20T06:00:00.000000Z", None, "2026-11-20"]]


def test_files_of_a_commit_that_were_not_moved_yet_are_read(tmp_path: Path) -> None:
    assert rows(write_tables(tmp_path, staged=True), "SELECT count(*) FROM log") == [[3]]


def test_the_database_itself_opens_nothing_else_and_keeps_its_settings(place: Path) -> None:
    """Statements that no policy has looked at: the database is closed on its own."""
    before = sorted(place.rglob("*"))
    with open_database(StoredTables(str(place / "tables")), ["log"]) as database:
        for sql in HOSTILE:
            with pytest.raises(duckdb.Error):
                database.execute(with_files(place, sql)).fetchall()
    assert sorted(place.rglob("*")) == before


def test_the_database_of_questions_is_closed_as_well(place: Path) -> None:
    """Its own questions are fixed texts; if one were not, it could still read nothing else."""
    files = StoredTables(str(place / "tables")).files("log")
    before = sorted(place.rglob("*"))
    with DuckDBEngine(files) as engine:
        log = engine.parquet(files, "n BIGINT, message VARCHAR")
        engine.connection.execute(f"CREATE VIEW log AS FROM {log.name}")
        for sql in HOSTILE:
            with pytest.raises(duckdb.Error):
                engine.connection.execute(with_files(place, sql)).fetchall()
        with pytest.raises(duckdb.Error):
            engine.parquet([with_files(place, "{other}")], "n BIGINT")
        assert engine.sql("SELECT count(*) AS n FROM {log}", log=log).rows() == [{"n": 3}]
    assert sorted(place.rglob("*")) == before


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


def test_a_database_of_questions_leaves_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests make such folders at the same time
    engine = DuckDBEngine()
    (folder,) = tmp_path.glob("balog-query-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    del engine
    assert not folder.exists()


REACHING = Path(__file__).with_name("hostile.sql").read_text().splitlines()[1:]
CATALOG = re.compile(
    r"SELECT (\* FROM (duckdb_settings|pragma_|query|information_schema|sqlite_master|pg_catalog)|current_setting)"
)
"""Statements about the closed database itself, which has no secret."""


UNKNOWN_TO_SPARK = re.compile(r"SELECT (getenv|current_setting|read_text|load_aws|\$)")


def test_a_query_that_reaches_beyond_the_tables_is_one_line(place: Path) -> None:
    tables = StoredTables(str(place / "tables"))
    before = sorted(place.rglob("*"))
    for sql in [*(with_files(place, sql) for sql in HOSTILE), *REACHING]:
        if CATALOG.match(sql):
            assert "hunter2" not in str(rows(tables, sql.replace("events", "log")))
        else:
            with pytest.raises(BalogError) as refused:
                rows(tables, sql)
            assert "\n" not in str(refused.value)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{file}'",
        "WITH a AS (COPY (SELECT 1) TO '{file}') SELECT * FROM a",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "SELECT 1; COPY (SELECT 1) TO '{file}'",
        "SELECT 1) AS answer(c0); COPY (SELECT 1) TO '{file}'; SELECT * FROM (SELECT 1",
        "WITH a AS (DELETE FROM log RETURNING *) SELECT * FROM a",
        "DROP VIEW log",
        "SELECT 1 FROM log; SELECT 2",
    ],
)
def test_no_query_changes_a_file_of_the_tables(tmp_path: Path, sql: str) -> None:
    """Their files may be opened, and DuckDB would write them, too."""
    tables = write_tables(tmp_path)
    (file,) = tables.files("log")
    content = Path(file).read_bytes()
    with pytest.raises(BalogError):
        rows(tables, sql.format(file=file) + " -- log")
    assert Path(file).read_bytes() == content


def test_spark_s_policy_refuses_it_in_one_line() -> None:
    pytest.importorskip("sqlglot")
    for sql in (sql for sql in REACHING if not UNKNOWN_TO_SPARK.match(sql)):
        with pytest.raises(ConfigError) as refused:
            check(sql.replace("RAW", "/tmp/raw"), ["events", "log"], ["/tmp/raw"])
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ['a"b', "a`b", "x; DROP", "c0", "\x00"])
def test_hostile_names_and_texts_stay_names_and_texts(tmp_path: Path, name: str) -> None:
    tables = write_tables(tmp_path)
    literal = name.replace("'", "''").replace("\x00", "")
    quoted = name.replace('"', '""').replace("\x00", "")
    assert rows(tables, f"SELECT '{literal}' AS \"{quoted or 'x'}\" FROM log LIMIT 1") == [[name.replace("\x00", "")]]


def test_a_query_that_takes_too_long_ends_with_one_line(tmp_path: Path) -> None:
    tables = write_tables(tmp_path, rows=100_000)
    with pytest.raises(BalogError, match=r"longer than 0 s; run it with --engine spark$"):
        rows(
            tables, "SELECT count(*) FROM log a JOIN log b ON a.n < b.n + b.n WHERE a.message < b.message", seconds=0.4
        )
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer) and thread.is_alive()]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT mesage FROM log", r'"mesage" not found.*"message".*, line 1$'),
        ("SELECT n\nFROM logg", r'logg does not exist! Did you mean "log"\?, line 2$'),
        ("SELECT n\nFROM dumps", r'dumps does not exist! Raw events of --source dumps are balog."dumps", line 2$'),
        ("SELEC 1 FROM log", r'syntax error at or near "SELEC", line 1$'),
        ("SELECT n, max(message) FROM log", r'"n" must appear in the GROUP BY clause'),
        ("SELECT 9223372036854775807 + n FROM log", r"(?i)overflow"),
        ("SELECT message::INT FROM log", r"Could not convert string 'line 0' to INT32"),
        ("", "expected one query"),
        ("SELECT ?", "parameter"),
        ("SELECT 1" + " " * (1 << 20) + "-- long", "characters; at most"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "depth limit"),
    ],
)
def test_a_wrong_statement_is_one_line_with_its_line_and_a_likely_name(tmp_path: Path, sql: str, said: str) -> None:
    with pytest.raises(BalogError, match=said) as refused:
        rows(write_tables(tmp_path), sql)
    assert "\n" not in str(refused.value)


def test_show_and_describe_list_all_tables_and_columns(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    assert rows(tables, "SHOW TABLES;") == [["log"]]
    assert [row[:2] for row in rows(tables, "DESCRIBE log")] == [
        ["n", "BIGINT"],
        ["message", "VARCHAR"],
        ["timestamp", "TIMESTAMP WITH TIME ZONE"],
        ["later", "DOUBLE"],
        ["date", "DATE"],
    ]


def test_values_are_json(tmp_path: Path) -> None:
    """Times are UTC, bytes base64, and numbers that JSON lacks texts."""
    sql = """SELECT TIMESTAMPTZ '2026-11-20 08:00:00.5+02' AS t, 'a'::BLOB AS b, 'nan'::DOUBLE AS d,
             ['inf'::FLOAT] AS l, MAP {'k': 1.50} AS m, {'x': NULL} AS s, 9223372036854775807 AS big, 'é"' AS text,
             1 AS a, 2 AS a
             FROM log LIMIT 1"""
    assert rows(write_tables(tmp_path), sql) == [
        ["2026-11-20T06:00:00.500000Z", "YQ==", "nan", "[inf]", {"k": 1.5}, {"x": None}, 2**63 - 1, 'é"', 1, 2]
    ]
