"""Streams of tables on DuckDB, compared with what DuckDB's own client reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb_engine")

import duckdb

from balog.tap.errors import SourceError
from balog.tap.sql import Database, TableStream
from balog.tap.sql.pages import TableReader
from tests.tap.test_sql_tables import Table

KINDS = """
CREATE TYPE mood AS ENUM ('z', 'it''s');
CREATE TABLE kinds (
    id integer PRIMARY KEY, n decimal(30,10), h hugeint, ub ubigint, ui uinteger, f real, d double, yes boolean,
    s varchar, instant timestamptz, naive timestamp, ns timestamp_ns, day date, clock time, span interval, j json,
    l integer[], st struct(a integer, b varchar), m map(varchar, integer), b blob, bits bit, u uuid, e mood,
    "Order; DROP x --" text
);
INSERT INTO kinds VALUES (
    1, 12345678901234567890.0123456789, 170141183460469231731687303715884105727, 18446744073709551615, 4294967295, 0.1,
    1e300, true, 'ä', '2026-01-02 03:04:05.678901+05', '2026-01-02 03:04:05.5', '2026-01-02 03:04:05.123456789',
    '2024-02-29', '01:02:03.5', INTERVAL '1 day 2 hours', '{"a": 1.00000000000000000001}', [1, NULL],
    {'a': 1, 'b': 'x'}, MAP {'k': 1},
    '\\x00\\xFF'::blob, '0101'::bit, '6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'it''s', 'x');
INSERT INTO kinds (id) VALUES (2);
"""


def database_of(folder: Path, script: str, **options: Any) -> Database:
    path = folder / "rows.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(script)
    return Database(f"duckdb:///{path}", **options)


def ask(folder: Path, query: str) -> list[Any]:
    with duckdb.connect(str(folder / "rows.duckdb"), read_only=True) as connection:
        return list(connection.execute(query).fetchall())


def test_each_type_has_its_value(tmp_path: Path) -> None:
    table = Table(database_of(tmp_path, KINDS), "kinds")
    first, second = table.run()
    table.database.close()

    assert str(first.pop("n")) == "12345678901234567890.0123456789"
    assert str(first["j"].pop("a")) == "1.00000000000000000001"
    assert first == {
        "id": 1,
        "h": 170141183460469231731687303715884105727,
        "ub": 18446744073709551615,
        "ui": 4294967295,
        "f": 0.1,
        "d": 1e300,
        "yes": True,
        "s": "ä",
        "instant": "2026-01-01T22:04:05.678901Z",
        "naive": "2026-01-02T03:04:05.5Z",
        "ns": "2026-01-02 03:04:05.123456789",
        "day": "2024-02-29",
        "clock": "01:02:03.5",
        "span": "1 day 02:00:00",
        "j": {},
        "l": [1, None],
        "st": {"a": 1, "b": "x"},
        "m": {"k": 1},
        "b": "AP8=",
        "bits": "0101",
        "u": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "e": "it's",
        "Order; DROP x --": "x",
    }
    assert all(value is None for name, value in second.items() if name != "id")


def test_numbers_and_times_that_json_has_not(tmp_path: Path) -> None:
    script = """
    CREATE TABLE far (id integer PRIMARY KEY, f float, d double, l double[], m map(double, double), day date,
        instant timestamptz, naive timestamp, ms timestamp_ms);
    INSERT INTO far VALUES
        (1, 'nan', 'nan', ['nan'::double, 1], map {1.5: 'inf'::double}, 'infinity', '-infinity', 'infinity', NULL),
        (2, 'inf', '-inf', [], map {}, '9999-12-31', '9999-12-31 00:00:00+00', '0001-01-01', '2026-01-31 10:00:00.5');
    INSERT INTO far (id, day) VALUES (3, '12026-01-01'), (4, '0044-03-15 (BC)');
    """
    table = Table(database_of(tmp_path, script, page_rows=1), "far")
    first, second = table.run()
    table.database.close()

    assert {name for name, value in first.items() if value is not None} == {"id", "l", "m"}
    assert (first["l"], first["m"]) == ([None, 1.0], {"1.5": None})
    assert (second["f"], second["d"]) == (None, None)
    assert [second[name] for name in ("day", "instant", "naive", "ms")] == [
        "9999-12-31",
        "9999-12-31T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "2026-01-31T10:00:00.5Z",
    ]


def test_an_infinite_replication_key_does_not_move_the_bookmark(tmp_path: Path) -> None:
    script = """CREATE TABLE t (id integer PRIMARY KEY, "at" timestamp);
    INSERT INTO t VALUES (1, 'infinity'), (2, now())"""
    table = Table(database_of(tmp_path, script), "t", replication_method="INCREMENTAL", replication_key="at")
    table.run()
    table.database.close()
    database_of(tmp_path, "INSERT INTO t VALUES (3, now() + INTERVAL 1 day)").close()
    assert sorted(row["id"] for row in table.run()) == [1, 2, 3]
    table.database.close()


def test_tables_views_keys_and_schemas_are_found(tmp_path: Path) -> None:
    script = """CREATE TABLE a (x integer, "b c" integer, PRIMARY KEY ("b c", x)); CREATE VIEW v AS SELECT x FROM a;
    CREATE SCHEMA other; CREATE TABLE other.a (y date);"""
    database = database_of(tmp_path, script, schemas=["main", "other"])
    found = {stream.name: stream for stream in TableStream.find(database)}
    assert sorted(found) == ["main-a", "main-v", "other-a"]
    assert found["main-a"].key_properties == ["b c", "x"]
    assert found["main-v"].metadata[()]["is-view"] is True
    assert list(found["other-a"].schema["properties"]) == ["y"]
    with pytest.raises(SourceError, match="there is no table 'none'"), database.connection() as connection:
        database.columns(connection, None, "none")
    with pytest.raises(SourceError, match="read-only"), database.connection() as connection:
        connection.exec_driver_sql("INSERT INTO a VALUES (1, 2)")
    database.close()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("decimal(38, 10)", "1.5, 12345678901234567890.0123456789, 12345678901234567890.0123456788, -1, 0"),
        ("float", "0.1, 16777215, -1.1, 0.7, 3e38"),
        ("mood", "'a', 'z', 'b', '1', 'B c'"),
        (
            "timestamp_ns",
            "'2026-01-01 00:00:00.000000001', '2026-01-01', '1999-01-01', '2026-01-01 00:00:01', '2027-01-01'",
        ),
        (
            "timestamptz",
            "'2026-01-01', '2026-01-01 00:00:00.000001', '1999-01-01', '2026-01-01 00:00:01', '2027-01-01'",
        ),
        ("time", "'10:00', '00:00:00.000001', '23:59:59', '00:00:01', '01:00'"),
        ("blob", "'\\x00', '', '\\x00\\x01', 'a', '\\xFF'"),
    ],
)
def test_keys_of_each_type_come_once_in_order(tmp_path: Path, kind: str, values: str) -> None:
    rows = ", ".join(f"(CAST({value} AS {kind}), {n})" for n, value in enumerate(values.split(", ")))
    script = f"""CREATE TYPE mood AS ENUM ('z', 'b', 'a', '1', 'B c'); CREATE TABLE t (k {kind} PRIMARY KEY, n integer);
    INSERT INTO t VALUES {rows};"""
    database = database_of(tmp_path, script, page_rows=1)
    reader = TableReader(database, None, "t", {"k", "n"}, ["k"])
    found = [page[0]["n"] for page in reader.pages(["k"], None)]
    database.close()
    assert found == [n for (n,) in ask(tmp_path, "SELECT n FROM t ORDER BY k")]
