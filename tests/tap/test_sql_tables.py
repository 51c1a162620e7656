"""Streams of tables on SQLite, compared with what the driver itself reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sqlalchemy")

from balog.common.errors import ConfigError
from balog.tap import Tap
from balog.tap.bookmarks import State
from balog.tap.catalog import choose
from balog.tap.errors import SourceError
from balog.tap.schema import schema_of
from balog.tap.sql import Database, TableStream
from balog.tap.sql.database import FoundTable
from balog.tap.sql.log import changed_keys, is_running, rank
from balog.tap.sql.pages import TableReader
from balog.tap.syncing import Sync
from tests.tap.syncs import Messages


class Killed(Exception):
    """The tap ended in the middle."""


class Table:
    """One table of a database as a tap, whose runs go on from the last state that was written."""

    def __init__(self, database: Database, table: str, **metadata: Any) -> None:
        self.database = database
        streams = {stream.name: stream for stream in TableStream.find(database)}
        self.tap = Tap("tap-rows")
        self.tap.client(lambda config: database)
        stream = self.tap.add(streams[table])
        self.catalog, _ = choose([stream], None, lambda each: schema_of(each.schema, lambda: None, each.name))
        entry = self.catalog.entries[table]
        for name, value in metadata.items():
            setattr(entry, name, value)
        self.state: dict[str, Any] = {}
        self.rows: dict[Any, dict[str, Any]] = {}
        self.keys = entry.key_properties

    def run(self, seen: int | None = None, config: Any = None) -> list[dict[str, Any]]:
        """Run; only the first messages are seen by the target, if the run was killed after them."""
        output = Messages()
        sync = Sync(self.tap, config or {}, self.catalog, State(self.state), output)
        assert sync.run() == 0, sync.failures
        messages = output.all[:seen]
        for message in messages:
            if message["type"] == "STATE":
                self.state = message["value"]
            elif message["type"] == "RECORD":
                record = message["record"]
                self.rows[str([record[key] for key in self.keys])] = record
        return [message["record"] for message in messages if message["type"] == "RECORD"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "rows.db")


@contextmanager
def opened(path: str | Path) -> Iterator[sqlite3.Connection]:
    """Open a database, and commit and close it at the end."""
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def database_of(path: str, script: str, **options: Any) -> Database:
    with opened(path) as connection:
        connection.executescript(script)
    return Database(f"sqlite:///{path}", **options)


class TestPages:
    @settings(max_examples=40, deadline=None)
    @given(
        keys=st.lists(
            st.tuples(st.none() | st.integers(-2, 2), st.none() | st.sampled_from(["", "a", "'", "ä", "b"])),
            unique=True,
            max_size=25,
        ),
        page_rows=st.integers(1, 4),
        start=st.integers(0, 30),
    )
    def test_composite_keys_with_nulls_come_once_in_order_from_any_row(
        self, tmp_path_factory: Any, keys: list[Any], page_rows: int, start: int
    ) -> None:
        path = tmp_path_factory.mktemp("pages") / "rows.db"
        with opened(path) as connection:
            connection.execute('CREATE TABLE t (a INTEGER, b TEXT, "order" INTEGER)')
            connection.executemany("INSERT INTO t VALUES (?, ?, 1)", keys)
            expected = [
                {"a": a, "b": b}
                for a, b in connection.execute("SELECT a, b FROM t ORDER BY a IS NULL, a, b IS NULL, b")
            ]
        database = Database(f"sqlite:///{path}", page_rows=page_rows)
        reader = TableReader(database, None, "t", {"a", "b"}, ["a", "b"])

        after = None if start >= len(expected) else list(expected[start].values())
        rows = [row for page in reader.pages(["a", "b"], after) for row in page]
        database.close()

        assert rows == expected[0 if after is None else start + 1 :]

    @pytest.mark.parametrize("page_rows", [1, 2, 3, 5])
    def test_rows_with_one_key_are_an_error_and_never_lost(self, path: str, page_rows: int) -> None:
        rows = "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2), (2), (3);"
        reader = TableReader(database_of(path, rows, page_rows=page_rows), None, "t", {"a"}, ["a"])
        with pytest.raises(SourceError, match="several rows have the same a, so pages would lose some of them"):
            list(reader.pages(["a"], None))


ROWS = st.lists(st.tuples(st.integers(0, 60), st.none() | st.integers(0, 4)), unique_by=lambda row: row[0], max_size=40)


class TestInterrupted:
    @settings(max_examples=30, deadline=None)
    @given(
        rows=ROWS, kills=st.lists(st.integers(1, 30), max_size=5), method=st.sampled_from(["FULL_TABLE", "INCREMENTAL"])
    )
    def test_any_kills_leave_the_target_with_all_rows(
        self, tmp_path_factory: Any, rows: list[Any], kills: list[int], method: str
    ) -> None:
        path = tmp_path_factory.mktemp("kills") / "rows.db"
        with opened(path) as connection:
            connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, changed INTEGER)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        key = "changed" if method == "INCREMENTAL" else None
        table = Table(Database(f"sqlite:///{path}", page_rows=3), "t", replication_method=method, replication_key=key)
        for kill in kills:
            table.run(seen=kill)
        table.run()
        table.database.close()

        assert sorted((row["id"], row["changed"]) for row in table.rows.values()) == sorted(rows)

    def test_a_full_table_goes_on_after_the_last_page(self, path: str) -> None:
        database = database_of(
            path, "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3), (4), (5);", page_rows=2
        )
        table = Table(database, "t")
        table.run(seen=6)  # two rows, and the state after them
        assert [row["id"] for row in table.run()] == [3, 4, 5]
        assert [row["id"] for row in table.run()] == [1, 2, 3, 4, 5]


class TestIncremental:
    SCRIPT = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME, number INTEGER);
    INSERT INTO t VALUES (1, NULL, NULL), (2, '2026-01-01 00:00:00', 1), (3, '2026-01-01 00:00:00.000000', 1),
        (4, '2026-01-02 00:00:00.5', 2), (5, '2025-01-01 00:00:00', 0);
    """

    def test_nulls_come_first_and_once_and_ties_again(self, path: str) -> None:
        table = Table(
            database_of(path, self.SCRIPT, page_rows=2), "t", replication_method="INCREMENTAL", replication_key="at"
        )
        assert [row["id"] for row in table.run()] == [1, 5, 2, 3, 4]
        assert table.state["bookmarks"]["t"]["at"] == "2026-01-02T00:00:00.5Z"
        assert [row["id"] for row in table.run()] == [4]

    def test_equal_times_in_several_forms_are_all_read_again(self, path: str) -> None:
        table = Table(database_of(path, self.SCRIPT), "t", replication_method="INCREMENTAL", replication_key="at")
        table.state = {"bookmarks": {"t": {"at": "2026-01-01T00:00:00Z"}}}
        assert [row["id"] for row in table.run()] == [2, 3, 4]

    def test_a_start_date_is_for_times_only(self, path: str) -> None:
        config = {"start_date": "2026-01-01T00:00:00Z"}
        database = database_of(path, self.SCRIPT)
        times = Table(database, "t", replication_method="INCREMENTAL", replication_key="at")
        numbers = Table(database, "t", replication_method="INCREMENTAL", replication_key="number")
        assert [row["id"] for row in times.run(config=config)] == [2, 3, 4]
        assert [row["id"] for row in numbers.run(config=config)] == [1, 5, 2, 3, 4]

    def test_a_view_without_keys(self, path: str) -> None:
        script = self.SCRIPT + "CREATE VIEW v AS SELECT at, number FROM t;"
        table = Table(
            database_of(path, script, page_rows=2), "v", replication_method="INCREMENTAL", replication_key="number"
        )
        assert [row["number"] for row in table.run()] == [None, 0, 1, 1, 2]
        assert [row["number"] for row in table.run()] == [2]


class TestFound:
    def test_tables_views_keys_types_and_what_the_user_may_choose(self, path: str) -> None:
        database = database_of(
            path,
            """
            CREATE TABLE "ord'er" (b TEXT, a INTEGER, at TIMESTAMP, PRIMARY KEY (a, b));
            CREATE TABLE hidden (id INTEGER);
            CREATE VIEW view_of AS SELECT * FROM "ord'er";
            """,
            names=["ord*", "view*"],
        )
        streams = {stream.name: stream for stream in TableStream.find(database)}

        assert list(streams) == ["ord'er", "view_of"]
        assert streams["ord'er"].key_properties == ["a", "b"]
        assert streams["ord'er"].replication_keys == ["a", "at"]
        assert not streams["ord'er"].has_log
        assert streams["view_of"].metadata[()]["is-view"] is True
        assert streams["ord'er"].metadata["properties", "at"] == {"sql-datatype": "TIMESTAMP", "naive-zone": "UTC"}

    def test_a_table_that_cannot_be_described_hides_no_other(
        self, path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        database = database_of(
            path, "CREATE TABLE a (id INTEGER); CREATE TABLE t (id INTEGER); CREATE VIEW broken AS SELECT * FROM t;"
        )
        found = [FoundTable(None, "gone", False), *database.tables()]
        with opened(path) as connection:
            connection.execute("DROP TABLE t")
        monkeypatch.setattr(database, "tables", lambda: iter(found))
        assert [stream.name for stream in TableStream.find(database)] == ["a"]
        logged = capsys.readouterr().err
        assert "The table 'gone' is skipped: there is no table 'gone'" in logged
        assert "The table 'broken' is skipped: the database: OperationalError: no such table: main.t" in logged

    def test_a_database_that_does_not_answer_is_an_error(self, path: str, tmp_path: Path) -> None:
        database = database_of(path, "CREATE TABLE a (id INTEGER); CREATE TABLE b (id INTEGER);")
        found = TableStream.find(database)
        assert next(found).name == "a"
        database.close()
        database.engine.url = database.engine.url.set(database=str(tmp_path / "no" / "such.db"))
        database.engine.pool = Database(f"sqlite:///{tmp_path}/no/such.db").engine.pool
        with pytest.raises(SourceError, match="unable to open database file"):
            next(found)

    def test_tables_of_an_index_are_no_streams(self, path: str) -> None:
        database = database_of(
            path, "CREATE VIRTUAL TABLE notes USING fts5(title, body); INSERT INTO notes VALUES ('a', 'b c');"
        )
        (stream,) = TableStream.find(database)
        assert (stream.name, list(stream.schema["properties"])) == ("notes", ["title", "body"])
        assert Table(database, "notes").run() == [{"title": "a", "body": "b c"}]

    @pytest.mark.parametrize(
        ("url", "driver"),
        [("postgresql://u:p@h/d", "psycopg2"), ("mysql://h/d", "pymysql"), ("mariadb://h/d", "pymysql")],
    )
    def test_a_url_without_a_driver_means_the_one_that_the_docs_install(self, url: str, driver: str) -> None:
        pytest.importorskip(driver)
        assert Database(url).engine.dialect.driver == driver

    def test_a_column_that_was_dropped_is_a_warning_and_a_key_an_error(self, path: str) -> None:
        database = database_of(
            path, "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT); INSERT INTO t VALUES (1, 2, 3);"
        )
        table = Table(database, "t")
        with opened(path) as connection:
            connection.execute("ALTER TABLE t DROP COLUMN a")
        assert table.run() == [{"id": 1, "b": "3"}]
        with opened(path) as connection:
            connection.executescript("DROP TABLE t; CREATE TABLE t (number INTEGER)")
        with pytest.raises(AssertionError, match="has no column 'id', which is a key; run --discover again"):
            table.run()

    @pytest.mark.parametrize(
        ("url", "reason"),
        [("nonsense", "is not a URL"), ("no+such://u:secret@h/d", "is not a URL"), ("mssql+x://h", "is")],
    )
    def test_wrong_urls_are_one_line_without_the_password(self, url: str, reason: str) -> None:
        with pytest.raises(ConfigError, match=reason) as error:
            Database(url)
        assert "secret" not in str(error.value)


class TestLogLines:
    @pytest.mark.parametrize(
        ("line", "keys"),
        [
            ("INSERT: id[integer]:1 t[text]:'it''s id[integer]:2'", [("1", "it's id[integer]:2")]),
            ("""UPDATE: id[integer]:-1 x[text]:null t[character varying]:'new-tuple: '""", [("-1", "new-tuple: ")]),
            ("UPDATE: old-key: id[bigint]:1 t[text]:'a' new-tuple: id[bigint]:2 t[text]:'b'", [("1", "a"), ("2", "b")]),
            ("""DELETE: id[numeric]:1.5 "q[""x"[text[]]:'{}' t["my""]type"]:'a\nb'""", [("1.5", "a\nb")]),
            ("TRUNCATE: (no-flags)", None),
        ],
    )
    def test_keys_are_found(self, line: str, keys: Any) -> None:
        assert changed_keys(line, ["id", "t"]) == keys

    def test_a_change_without_its_key_is_an_error(self) -> None:
        with pytest.raises(Exception, match="lacks 'id': the table's REPLICA IDENTITY must have"):
            changed_keys("DELETE: (no-tuple-data)", ["id"])

    def test_positions_are_ordered_as_numbers(self) -> None:
        assert rank("0/FF") < rank("1/0") < rank("A/1") < rank("10/0")

    @pytest.mark.parametrize(
        ("xid", "snapshot", "is_it"),
        [
            (5, "3:10:5,7", True),
            (6, "3:10:5,7", False),
            (12, "3:10:", True),
            (4294967290, f"{(1 << 32) - 20}:{(1 << 32) + 3}:{(1 << 32) - 6}", True),
            (4294967291, f"{(1 << 32) - 20}:{(1 << 32) + 3}:{(1 << 32) - 6}", False),
        ],
    )
    def test_transactions_of_an_epoch(self, xid: int, snapshot: str, is_it: bool) -> None:
        assert is_running(xid, snapshot) is is_it
