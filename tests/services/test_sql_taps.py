"""The tap of a database on real servers, compared with what the server itself says of its tables."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.services.real_taps import installed
from tests.services.servers.postgres import Database, PostgresServer, running_postgres

pytest.importorskip("psycopg2")

from tests.services.sql_runs import Runner

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_postgres(wal_level="logical") as running:
        yield running


Tables = Callable[..., tuple[Database, Runner]]


@pytest.fixture
def tables(server: PostgresServer, capfd: Any, tmp_path: Path) -> Tables:
    """Makes a database by statements, and what runs the tap on it."""

    def make(statements: str, **options: Any) -> tuple[Database, Runner]:
        database = server.database("source")
        database.run(statements)
        return database, Runner(capfd, tmp_path, database.url, schemas=["public", "we ird"], **options)

    return make


TYPES = """
CREATE DOMAIN age AS int CHECK (value > 0);
CREATE DOMAIN elder AS age CHECK (value > 60);
CREATE TYPE mood AS ENUM ('sad', 'it''s');
CREATE TABLE kinds (
    id bigint PRIMARY KEY, small smallint, n numeric(30,10), free numeric, r real, d double precision, yes boolean,
    t text, v varchar(9), c char(4), day date, at timestamptz, naive timestamp, clock time, clockz timetz,
    span interval, j json, jb jsonb, ints int[], grid int[][], texts text[], ids uuid[], b bytea, u uuid, m mood,
    net inet, nets inet[], net6 inet, subnet inet, block cidr, years age, ages age[], old elder,
    r4 int4range, bits bit(3), "Order; DROP TABLE x --" text
);
INSERT INTO kinds VALUES (
    9223372036854775807, -32768, 12345678901234567890.0123456789, 0.1, 1.5, 1e300, true,
    E'a\\n"b', 'ä', 'ab', '2024-02-29', '2026-01-02 03:04:05.678901+05', '2026-01-02 03:04:05', '23:59:59.5',
    '01:02:03+02', '1 year 2 days 03:04:05', '{"a": 1.00000000000000000001}', '[1, null]', '{1,NULL,3}',
    '{{1,2},{3,4}}', '{"a,b",NULL}', '{6ba7b810-9dad-11d1-80b4-00c04fd430c8}', '\\x00ff',
    '6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'it''s', '10.0.0.1', '{10.0.0.1,::1}',
    '::1', '10.0.0.1/24', '10.0.0.1/32', 7, '{7}', 70, '[1,5)', B'101', 'x');
INSERT INTO kinds (id) VALUES (1);
INSERT INTO kinds (id, n, free, r, d) VALUES (2, 'NaN', 'NaN', 'NaN', 'Infinity');
"""


class TestTypes:
    def test_each_has_its_value(self, tables: Tables) -> None:
        _, runner = tables(TYPES)
        runner.select(runner.discover()["public-kinds"])

        assert runner.run() == 0, runner.err
        first, second, third = sorted(runner.records("public-kinds"), key=lambda record: record["id"])

        assert all(value is None for name, value in first.items() if name != "id")
        assert all(second[name] is None for name in ("n", "free", "r", "d"))
        assert third == {
            "id": 9223372036854775807,
            "small": -32768,
            "n": 12345678901234567890.0123456789,
            "free": 0.1,
            "r": 1.5,
            "d": 1e300,
            "yes": True,
            "t": 'a\n"b',
            "v": "ä",
            "c": "ab  ",
            "day": "2024-02-29",
            "at": "2026-01-01T22:04:05.678901Z",
            "naive": "2026-01-02T03:04:05Z",
            "clock": "23:59:59.5",
            "clockz": "01:02:03+02",
            "span": "P1Y2DT3H4M5S",
            "j": {"a": 1.00000000000000000001},
            "jb": [1, None],
            "ints": [1, None, 3],
            "grid": [[1, 2], [3, 4]],
            "texts": ["a,b", None],
            "ids": ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
            "b": "AP8=",
            "u": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "m": "it's",
            "net": "10.0.0.1",
            "nets": ["10.0.0.1", "::1"],
            "net6": "::1",
            "subnet": "10.0.0.1/24",
            "block": "10.0.0.1/32",
            "years": 7,
            "ages": [7],
            "old": 70,
            "r4": "[1,5)",
            "bits": "101",
            "Order; DROP TABLE x --": "x",
        }

    def test_numbers_keep_all_digits(self, tables: Tables) -> None:
        _, runner = tables(
            "CREATE TABLE d (id int PRIMARY KEY, n numeric); INSERT INTO d VALUES (1, 1234567890123456789.123)"
        )
        runner.select(runner.discover()["public-d"])
        assert runner.run() == 0
        assert '"n":1234567890123456789.123' in runner.out


FAR = """
CREATE TABLE far (id int PRIMARY KEY, at {0});
INSERT INTO far VALUES (1, '2026-01-01'), (2, 'infinity'), (3, '-infinity'), (4, '0044-03-15 BC'), (5, '12026-01-01'),
    (6, NULL), (7, '9999-12-31'), (8, '0001-01-01');
"""


class TestFarTimes:
    @pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "date"])
    def test_infinity_is_null_and_years_that_json_has_not_are_quarantined(self, tables: Tables, kind: str) -> None:
        _, runner = tables(FAR.format(kind), page_rows=2)
        runner.select(runner.discover()["public-far"])
        assert runner.run() == 0, runner.err
        clock = "" if kind == "date" else "T00:00:00Z"
        written = {record["id"]: record["at"] for record in runner.records("public-far")}
        days = {1: "2026-01-01", 7: "9999-12-31", 8: "0001-01-01"}
        assert written == {2: None, 3: None, 6: None, **{key: day + clock for key, day in days.items()}}
        assert "$.at: expected a year from 1 to 9999" in runner.err

    @pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "date"])
    def test_infinity_does_not_move_the_bookmark(self, tables: Tables, kind: str) -> None:
        database, runner = tables(FAR.format(kind) + "DELETE FROM far WHERE id IN (4, 5, 7)", page_rows=2)
        runner.select(runner.discover()["public-far"], replication_method="INCREMENTAL", replication_key="at")
        assert runner.run() == 0, runner.err
        database.run("INSERT INTO far VALUES (9, '2026-01-02')")
        assert runner.run() == 0, runner.err
        assert sorted(record["id"] for record in runner.records("public-far")) == [1, 2, 3, 6, 8, 9]


class TestPages:
    @pytest.mark.parametrize("kind", ["real", "double precision", "numeric"])
    def test_fractions_as_keys_come_once(self, tables: Tables, kind: str) -> None:
        _, runner = tables(
            f"CREATE TABLE f (k {kind} PRIMARY KEY); INSERT INTO f VALUES (0.1), (-1.1), (16777215), (0.7)", page_rows=1
        )
        runner.select(runner.discover()["public-f"])
        assert runner.run() == 0, runner.err
        sent = [message["record"]["k"] for message in map(json.loads, runner.out.splitlines()) if "record" in message]
        assert sent == [-1.1, 0.1, 0.7, 16777215]


class TestDiscovery:
    def test_tables_views_partitions_and_other_schemas(self, tables: Tables) -> None:
        _, runner = tables("""
            CREATE SCHEMA "we ird";
            CREATE TABLE "we ird"."t""x" (id int, "a b" int, PRIMARY KEY ("a b", id));
            CREATE TABLE parent (id int, day date) PARTITION BY RANGE (day);
            CREATE TABLE part PARTITION OF parent FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
            CREATE VIEW seen AS SELECT * FROM parent;
            CREATE MATERIALIZED VIEW kept AS SELECT * FROM parent;
            INSERT INTO "we ird"."t""x" VALUES (1, 2);
            """)
        found = runner.discover()

        assert sorted(found) == ["public-kept", "public-parent", "public-seen", 'we ird-t"x']
        entry = found['we ird-t"x']
        assert entry["key_properties"] == ["a b", "id"]
        runner.select(entry)
        assert runner.run() == 0, runner.err
        assert runner.records('we ird-t"x') == [{"id": 1, "a b": 2}]

    def test_a_table_without_columns_hides_no_other(self, tables: Tables) -> None:
        _, runner = tables("CREATE TABLE a (id int); CREATE TABLE nocols (); CREATE TABLE z (id int)")
        assert sorted(runner.discover()) == ["public-a", "public-z"]
        assert "The table 'public-nocols' is skipped: the table 'nocols' has no columns" in runner.err

    def test_wrong_passwords_and_lost_tables_are_one_line_without_secrets(self, tables: Tables) -> None:
        database, runner = tables("CREATE TABLE a (id int PRIMARY KEY)")
        runner.select(runner.discover()["public-a"])
        database.run("DROP TABLE a")
        assert runner.run() == 1
        assert "CRITICAL public-a: there is no table 'a' in the schema 'public'" in runner.err
        runner.url = runner.url.replace("only-of", "wrong-of")
        assert runner.start("--discover") == 1
        assert runner.out == ""
        assert "password authentication failed" in runner.err
        assert "wrong-of" not in runner.err
        assert len([line for line in runner.err.splitlines() if not line.startswith("{")]) == 1


def rows_of(database: Database, query: str) -> list[dict[str, Any]]:
    return sorted(database.ask(query), key=lambda row: json.dumps(row, sort_keys=True))


def same(records: list[dict[str, Any]], rows: list[dict[str, Any]]) -> bool:
    plain = [{key: value for key, value in record.items() if key != "_sdc_deleted_at"} for record in records]
    return sorted(plain, key=lambda row: json.dumps(row, sort_keys=True)) == rows


ORDERS = """
CREATE TABLE orders (shop text, id int, changed timestamptz, note text, PRIMARY KEY (shop, id));
INSERT INTO orders SELECT 'shop ' || i % 7, i, CASE WHEN i % 11 = 0 THEN NULL
    ELSE timestamptz '2026-01-01' + (i / 100) * interval '1 day' END, repeat('x', i % 20)
FROM generate_series(1, 1000) i;
"""
AS_JSON = """SELECT shop, id, to_char(changed, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS changed, note FROM orders"""


class TestInterrupted:
    @pytest.mark.parametrize("method", ["FULL_TABLE", "INCREMENTAL"])
    def test_after_twenty_kills_the_target_equals_the_source(self, tables: Tables, method: str) -> None:
        database, runner = tables(ORDERS)
        runner.select(runner.discover()["public-orders"], replication_method=method, replication_key="changed")
        chance = random.Random(7)
        for _ in range(20):
            runner.run(seen=chance.randrange(1, 160))
        assert runner.run() == 0, runner.err

        assert same(runner.records("public-orders"), rows_of(database, AS_JSON))

    def test_a_complete_run_reads_only_what_changed(self, tables: Tables) -> None:
        database, runner = tables(ORDERS)
        runner.select(runner.discover()["public-orders"], replication_method="INCREMENTAL", replication_key="changed")
        assert runner.run() == 0
        database.run("UPDATE orders SET changed = '2026-06-01', note = 'new' WHERE id = 500")
        before = runner.lines
        assert runner.run() == 0

        assert same(runner.records("public-orders"), rows_of(database, AS_JSON))
        assert runner.lines - before < 20  # the last tie of the first run, the change, and the frame


class TestLog:
    def test_changes_deletions_moves_and_truncation_arrive(self, tables: Tables) -> None:
        database, runner = tables(
            ORDERS + 'CREATE TABLE "o;""ther" (id int PRIMARY KEY, "a[b]:c" text);', slot="balog_logged"
        )
        found = runner.discover()
        runner.select(found["public-orders"], found['public-o;"ther'], replication_method="LOG_BASED")
        assert runner.run() == 0, runner.err

        changes = [
            "UPDATE orders SET note = 'it''s new-tuple: id[integer]:7' WHERE id = 7",
            "UPDATE orders SET shop = 'moved ''[' WHERE id = 9; DELETE FROM orders WHERE id = 10",
            "BEGIN; INSERT INTO orders VALUES ('rolled', 1, NULL, 'back'); ROLLBACK",
            """INSERT INTO "o;""ther" VALUES (1, 'x'), (2, NULL); UPDATE "o;""ther" SET id = 3 WHERE id = 1""",
            "TRUNCATE orders; INSERT INTO orders VALUES ('after', 1, NULL, 'y')",
            "ALTER TABLE orders REPLICA IDENTITY FULL; UPDATE orders SET id = 2; INSERT INTO orders VALUES ('a', 3)",
            'TRUNCATE orders, "o;""ther"',
        ]
        for change in changes:
            database.run(change)
            assert runner.run() == 0, runner.err
            assert same(runner.records("public-orders"), rows_of(database, AS_JSON)), change
            assert same(runner.records('public-o;"ther'), rows_of(database, 'SELECT * FROM "o;""ther"')), change

    def test_random_changes_and_kills(self, tables: Tables) -> None:
        database, runner = tables(ORDERS, page_rows=20, slot="balog_random")
        runner.select(runner.discover()["public-orders"], replication_method="LOG_BASED")
        chance = random.Random(11)
        for _ in range(8):
            runner.run(seen=chance.randrange(1, 200))
            low = chance.randrange(900)
            database.run(
                f"""DELETE FROM orders WHERE id BETWEEN {low} AND {low + 20};
                UPDATE orders SET note = note || 'z' WHERE id % 10 = {chance.randrange(10)};
                INSERT INTO orders SELECT 'shop new', i, now(), 'n' FROM generate_series({low}, {low + 5}) i
                ON CONFLICT DO NOTHING;"""
            )
        assert runner.run() == 0, runner.err
        simple = "SELECT shop, id, note FROM orders"
        records = [
            {name: record[name] for name in ("shop", "id", "note")} for record in runner.records("public-orders")
        ]
        assert same(records, rows_of(database, simple))

    def test_the_slot_keeps_what_no_state_has_confirmed(self, tables: Tables) -> None:
        database, runner = tables(ORDERS, slot="balog_kept")
        runner.select(runner.discover()["public-orders"], replication_method="LOG_BASED")
        assert runner.run() == 0
        old = json.loads(json.dumps(runner.state))
        database.run("UPDATE orders SET note = 'changed' WHERE id = 1")
        assert runner.run() == 0
        runner.state = old  # the target lost what came after
        runner.targets["public-orders"].rows = {
            key: (version, {**record, "note": ""} if record["id"] == 1 else record)
            for key, (version, record) in runner.targets["public-orders"].rows.items()
        }
        assert runner.run() == 0
        assert same(runner.records("public-orders"), rows_of(database, AS_JSON))

    def test_a_lost_slot_reads_all_again(self, tables: Tables) -> None:
        database, runner = tables(ORDERS, slot="balog_lost")
        runner.select(runner.discover()["public-orders"], replication_method="LOG_BASED")
        assert runner.run() == 0
        database.run("SELECT pg_drop_replication_slot('balog_lost'); DELETE FROM orders WHERE id < 500;")
        assert runner.run() == 0
        assert "all rows are read" in runner.err
        assert same(runner.records("public-orders"), rows_of(database, AS_JSON))

    def test_a_slot_that_is_lost_in_the_first_read_leaves_no_rows_of_that_attempt(self, tables: Tables) -> None:
        database, runner = tables(ORDERS, slot="balog_lost_first")
        runner.select(runner.discover()["public-orders"], replication_method="LOG_BASED")
        runner.run(seen=160)
        database.run("SELECT pg_drop_replication_slot('balog_lost_first'); DELETE FROM orders WHERE shop = 'shop 0'")
        assert runner.run() == 0
        assert same(runner.records("public-orders"), rows_of(database, AS_JSON))


TABLE = "CREATE TABLE t (id int PRIMARY KEY, note text)"
STEPS = {
    "first": "SELECT 1",
    "changes": "UPDATE t SET note = 'new' WHERE id < 3; INSERT INTO t VALUES (20, 'x')",
    "deletion": "DELETE FROM t WHERE id = 4",
    "truncate": "TRUNCATE t; INSERT INTO t SELECT i, 'after' FROM generate_series(101, 105) i",
    "after it": "INSERT INTO t VALUES (106, 'y'); DELETE FROM t WHERE id = 101",
    "truncate again": "UPDATE t SET note = 'old' WHERE id = 102; TRUNCATE t; INSERT INTO t VALUES (102, 'z')",
    "lost slot": "SELECT pg_drop_replication_slot('SLOT'); INSERT INTO t VALUES (7, 'u'); DELETE FROM t WHERE id = 102",
}


SDK_TARGET = """
from singer_sdk.sql import SQLConnector, SQLSink, SQLTarget


class Connector(SQLConnector):
    def get_sqlalchemy_url(self, config):
        return config["sqlalchemy_url"]


class Sink(SQLSink):
    connector_class = Connector

    def generate_insert_statement(self, full_table_name, schema):
        return super().generate_insert_statement(full_table_name, schema).prefix_with("OR REPLACE")


class Rows(SQLTarget):
    name = "target-rows"
    default_sink_class = Sink
    config_jsonschema = {"type": "object", "properties": {"sqlalchemy_url": {"type": "string"}}}


Rows.cli()
"""
"""A target of SQLite as the Meltano SDK makes it: ACTIVATE_VERSION deletes smaller versions, not rows without one."""

QUERY = "SELECT id, note FROM t WHERE _sdc_deleted_at IS NULL ORDER BY id"


class LoadedTarget:
    """A target that gets the messages of each run of a tap: that of SQLite, or one of PostgreSQL."""

    def __init__(self, kind: str, folder: Path, database: Database) -> None:
        self._is_sqlite, self._path, self._database = kind == "sdk", folder / "rows.db", database
        program = installed(
            "target-postgres-pipelinewise" if kind == "pipelinewise" else "target-postgres", "target-postgres"
        )
        config = {**database.config, "dbname": database.name, "default_target_schema": "public", "hard_delete": True}
        self._command = [program]
        if self._is_sqlite:
            config = {"sqlalchemy_url": f"sqlite:///{self._path}", "hard_delete": True, "add_record_metadata": True}
            (folder / "target.py").write_text(SDK_TARGET)
            self._command = [str(Path(program).with_name("python")), str(folder / "target.py")]
        (folder / "target.json").write_text(json.dumps(config))
        self._command += ["--config", str(folder / "target.json")]

    def load(self, messages: str) -> list[tuple[int, str]]:
        """Pass messages on; return the rows that the target has then."""
        done = subprocess.run(self._command, input=messages, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        if not self._is_sqlite:
            return [(row["id"], row["note"]) for row in self._database.ask(QUERY)]
        with closing(sqlite3.connect(self._path)) as connection:
            return list(connection.execute(QUERY))


class TestTargets:
    @pytest.mark.parametrize(
        ("kind", "ignored"),
        [("sdk", ()), ("postgres", ()), ("pipelinewise", ("truncate", "again", "slot"))],
    )
    def test_a_table_equals_the_source_after_each_step_of_its_log(
        self, server: PostgresServer, capfd: Any, tmp_path: Path, kind: str, ignored: tuple[str, ...]
    ) -> None:
        """PipelineWise's target ignores ACTIVATE_VERSION: its steps are those that delete each row by its key."""
        slot = f"balog_{kind}"
        source = server.database(f"{kind}_source")
        source.run(f"{TABLE}; INSERT INTO t SELECT i, 'n' FROM generate_series(1, 9) i")
        target = LoadedTarget(kind, tmp_path, server.database(f"{kind}_target"))
        runner = Runner(capfd, tmp_path, source.url, slot=slot)
        runner.select(runner.discover()["t"], replication_method="LOG_BASED")
        for step, statements in STEPS.items():
            if not step.endswith(ignored):
                source.run(statements.replace("SLOT", slot))
                assert runner.run() == 0, runner.err
                assert target.load(runner.out) == rows_in(source), step

    @pytest.mark.parametrize("kind", ["sdk", "postgres"])
    def test_a_table_that_is_read_as_a_whole_now_and_then_loses_the_rows_of_runs_between(
        self, server: PostgresServer, capfd: Any, tmp_path: Path, kind: str
    ) -> None:
        source = server.database(f"whole_{kind}_source")
        source.run(f"{TABLE}; INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        target = LoadedTarget(kind, tmp_path, server.database(f"whole_{kind}_target"))
        runner = Runner(capfd, tmp_path, source.url)
        entry = runner.discover()["t"]
        for method, change in (
            ("FULL_TABLE", "SELECT 1"),
            ("INCREMENTAL", "INSERT INTO t VALUES (3, 'c')"),
            ("FULL_TABLE", "DELETE FROM t WHERE id > 1"),
        ):
            source.run(change)
            runner.select(entry, replication_method=method, replication_key="id")
            assert runner.run() == 0, runner.err
            assert target.load(runner.out) == rows_in(source), method


def rows_in(source: Database) -> list[tuple[int, str]]:
    return [(row["id"], row["note"]) for row in source.ask("SELECT id, note FROM t ORDER BY id")]
