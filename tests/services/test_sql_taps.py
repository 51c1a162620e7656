"""The tap of a database on real servers, compared with what the server itself says of its tables."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from balog.tap import Tap
from tests.services.servers.postgres import Database, PostgresServer, running_postgres

pytest.importorskip("psycopg2")

from balog.tap.sql import Database as SqlDatabase
from balog.tap.sql import TableStream

pytestmark = pytest.mark.service


def tap_of(database: SqlDatabase) -> Tap:
    tap = Tap("tap-rows")
    tap.client(lambda config: database)

    @tap.discover(reader=TableStream)
    def tables(client: SqlDatabase, context: Any) -> Any:
        return TableStream.find(client, context)

    return tap


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_postgres(wal_level="logical") as running:
        yield running


class Target:
    """What a target has of one stream: rows by key, versions, deletions."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.rows: dict[tuple[Any, ...], tuple[Any, dict[str, Any]]] = {}
        self.extra: list[dict[str, Any]] = []

    def put(self, message: dict[str, Any]) -> None:
        record = message["record"]
        if not self.keys:
            self.extra.append(record)
            return
        key = tuple(record[name] for name in self.keys)
        if record.get("_sdc_deleted_at"):
            self.rows.pop(key, None)
        else:
            self.rows[key] = (message.get("version"), record)

    def activate(self, version: int) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row[0] == version}

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for _, record in self.rows.values()] + self.extra


class Runner:
    """Runs the tap over and over, as a pipeline does: with the last state that it wrote."""

    def __init__(self, capture: Any, folder: Path, database: Database, rows: int = 50, slot: str | None = None) -> None:
        self.capture, self.folder = capture, folder
        config = database.config
        self.url = (
            f"postgresql+psycopg2://{config['user']}:{config['password']}@127.0.0.1:{config['port']}/{database.name}"
        )
        self.rows, self.slot = rows, slot
        self.state: dict[str, Any] | None = None
        self.targets: dict[str, Target] = {}
        self.lines = 0
        self.out = self.err = ""

    def start(self, *arguments: str) -> int:
        database = SqlDatabase(self.url, page_rows=self.rows, slot=self.slot, schemas=["public", "we ird"])
        with pytest.raises(SystemExit) as exit, closing(database):
            tap_of(database).run(arguments)
        self.out, self.err = self.capture.readouterr()
        return int(exit.value.code or 0)

    def discover(self) -> dict[str, Any]:
        assert self.start("--discover") == 0, self.err
        return {entry["tap_stream_id"]: entry for entry in json.loads(self.out)["streams"]}

    def select(self, *entries: dict[str, Any], **metadata: str) -> None:
        for entry in entries:
            top = next(each["metadata"] for each in entry["metadata"] if not each["breadcrumb"])
            top |= {"selected": True, **{key.replace("_", "-"): value for key, value in metadata.items()}}
        (self.folder / "catalog.json").write_text(json.dumps({"streams": list(entries)}))

    def run(self, seen: int | None = None) -> int:
        """Run the tap. If only so many lines are seen, it was killed after them: nothing that came later counts."""
        arguments = ["--catalog", str(self.folder / "catalog.json")]
        if self.state is not None:
            (self.folder / "state.json").write_text(json.dumps(self.state))
            arguments += ["--state", str(self.folder / "state.json")]
        code = self.start(*arguments)
        for line in self.out.splitlines()[:seen]:
            self._take(json.loads(line))
        return code

    def _take(self, message: dict[str, Any]) -> None:
        self.lines += 1
        kind = message["type"]
        if kind == "SCHEMA":
            self.targets.setdefault(message["stream"], Target(message["key_properties"]))
        elif kind == "RECORD":
            self.targets[message["stream"]].put(message)
        elif kind == "ACTIVATE_VERSION":
            self.targets[message["stream"]].activate(message["version"])
        elif kind == "STATE":
            self.state = message["value"]

    def records(self, stream: str) -> list[dict[str, Any]]:
        return self.targets[stream].records


TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'it''s');
CREATE TABLE kinds (
    id bigint PRIMARY KEY, small smallint, n numeric(30,10), free numeric, r real, d double precision, yes boolean,
    t text, v varchar(9), c char(4), day date, at timestamptz, naive timestamp, clock time, clockz timetz,
    span interval, j json, jb jsonb, ints int[], grid int[][], texts text[], ids uuid[], b bytea, u uuid, m mood,
    net inet, r4 int4range, bits bit(3), "Order; DROP TABLE x --" text
);
INSERT INTO kinds VALUES (
    9223372036854775807, -32768, 12345678901234567890.0123456789, 0.1, 1.5, 1e300, true,
    E'a\\n"b', 'ä', 'ab', '2024-02-29', '2026-01-02 03:04:05.678901+05', '2026-01-02 03:04:05', '23:59:59.5',
    '01:02:03+02', '1 year 2 days 03:04:05', '{"a": 1.00000000000000000001}', '[1, null]', '{1,NULL,3}',
    '{{1,2},{3,4}}', '{"a,b",NULL}', '{6ba7b810-9dad-11d1-80b4-00c04fd430c8}', '\\x00ff',
    '6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'it''s', '10.0.0.1', '[1,5)', B'101', 'x');
INSERT INTO kinds (id) VALUES (1);
INSERT INTO kinds (id, n, free, d) VALUES (2, 'NaN', 'NaN', 'Infinity');
"""


class TestTypes:
    def test_each_has_its_value(self, server: PostgresServer, capfd: Any, tmp_path: Path) -> None:
        database = server.database("kinds")
        database.run(TYPES)
        runner = Runner(capfd, tmp_path, database)
        runner.select(runner.discover()["public-kinds"])

        assert runner.run() == 0, runner.err
        first, second, third = sorted(runner.records("public-kinds"), key=lambda record: record["id"])

        assert all(value is None for name, value in first.items() if name != "id")
        assert (second["n"], second["free"], second["d"]) == (None, None, None)
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
            "net": "10.0.0.1/32",
            "r4": "[1,5)",
            "bits": "101",
            "Order; DROP TABLE x --": "x",
        }

    def test_numbers_keep_all_digits(self, server: PostgresServer, capfd: Any, tmp_path: Path) -> None:
        database = server.database("digits")
        database.run(
            "CREATE TABLE d (id int PRIMARY KEY, n numeric); INSERT INTO d VALUES (1, 1234567890123456789.123)"
        )
        runner = Runner(capfd, tmp_path, database)
        runner.select(runner.discover()["public-d"])
        assert runner.run() == 0
        assert '"n":1234567890123456789.123' in runner.out


class TestDiscovery:
    def test_tables_views_partitions_and_other_schemas(
        self, server: PostgresServer, capfd: Any, tmp_path: Path
    ) -> None:
        database = server.database("found")
        database.run(
            """
            CREATE SCHEMA "we ird";
            CREATE TABLE "we ird"."t""x" (id int, "a b" int, PRIMARY KEY ("a b", id));
            CREATE TABLE parent (id int, day date) PARTITION BY RANGE (day);
            CREATE TABLE part PARTITION OF parent FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
            CREATE VIEW seen AS SELECT * FROM parent;
            CREATE MATERIALIZED VIEW kept AS SELECT * FROM parent;
            INSERT INTO "we ird"."t""x" VALUES (1, 2);
            """
        )
        runner = Runner(capfd, tmp_path, database)
        found = runner.discover()

        assert sorted(found) == ["public-kept", "public-parent", "public-seen", 'we ird-t"x']
        entry = found['we ird-t"x']
        assert entry["key_properties"] == ["a b", "id"]
        runner.select(entry)
        assert runner.run() == 0, runner.err
        assert runner.records('we ird-t"x') == [{"id": 1, "a b": 2}]

    def test_wrong_passwords_and_lost_tables_are_one_line_without_secrets(
        self, server: PostgresServer, capfd: Any, tmp_path: Path
    ) -> None:
        database = server.database("lost")
        database.run("CREATE TABLE a (id int PRIMARY KEY)")
        runner = Runner(capfd, tmp_path, database)
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
    def test_after_twenty_kills_the_target_equals_the_source(
        self, server: PostgresServer, capfd: Any, tmp_path: Path, method: str
    ) -> None:
        database = server.database("killed")
        database.run(ORDERS)
        runner = Runner(capfd, tmp_path, database)
        runner.select(runner.discover()["public-orders"], replication_method=method, replication_key="changed")
        chance = random.Random(7)
        for _ in range(20):
            runner.run(seen=chance.randrange(1, 160))
        assert runner.run() == 0, runner.err

        assert same(runner.records("public-orders"), rows_of(database, AS_JSON))

    def test_a_complete_run_reads_only_what_changed(self, server: PostgresServer, capfd: Any, tmp_path: Path) -> None:
        database = server.database("changed")
        database.run(ORDERS)
        runner = Runner(capfd, tmp_path, database)
        runner.select(runner.discover()["public-orders"], replication_method="INCREMENTAL", replication_key="changed")
        assert runner.run() == 0
        database.run("UPDATE orders SET changed = '2026-06-01', note = 'new' WHERE id = 500")
        before = runner.lines
        assert runner.run() == 0

        assert same(runner.records("public-orders"), rows_of(database, AS_JSON))
        assert runner.lines - before < 20  # the last tie of the first run, the change, and the frame


class TestLog:
    def test_changes_deletions_moves_and_truncation_arrive(
        self, server: PostgresServer, capfd: Any, tmp_path: Path
    ) -> None:
        database = server.database("logged")
        database.run(ORDERS + 'CREATE TABLE "o;""ther" (id int PRIMARY KEY, "a[b]:c" text);')
        runner = Runner(capfd, tmp_path, database, slot="balog_logged")
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

    def test_random_changes_and_kills(self, server: PostgresServer, capfd: Any, tmp_path: Path) -> None:
        database = server.database("random_log")
        database.run(ORDERS)
        runner = Runner(capfd, tmp_path, database, rows=20, slot="balog_random")
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

    def test_the_slot_keeps_what_no_state_has_confirmed(
        self, server: PostgresServer, capfd: Any, tmp_path: Path
    ) -> None:
        database = server.database("kept_log")
        database.run(ORDERS)
        runner = Runner(capfd, tmp_path, database, slot="balog_kept")
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

    def test_a_lost_slot_reads_all_again(self, server: PostgresServer, capfd: Any, tmp_path: Path) -> None:
        database = server.database("lost_log")
        database.run(ORDERS)
        runner = Runner(capfd, tmp_path, database, slot="balog_lost")
        runner.select(runner.discover()["public-orders"], replication_method="LOG_BASED")
        assert runner.run() == 0
        database.run("SELECT pg_drop_replication_slot('balog_lost'); DELETE FROM orders WHERE id < 500;")
        assert runner.run() == 0
        assert "all rows are read" in runner.err
        assert same(runner.records("public-orders"), rows_of(database, AS_JSON))
