"""Columns of SQLite with any values: right ones are written, the others are quarantined, and no row is lost."""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sqlalchemy")

from balog.tap.sql import Database
from tests.tap.test_sql_tables import Table, opened

NUMBER = ["null", "number"]
TEXT = ["null", "string"]


class Rows:
    """A table ``t`` of an ``id`` and a column ``v`` of one type, and its quarantine."""

    def __init__(
        self, folder: Path, declared: str, values: list[Any], *, is_incremental: bool = False, **options: Any
    ) -> None:
        path = folder / "rows.db"
        path.unlink(missing_ok=True)
        with opened(path) as connection:
            connection.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {declared})")
            for value in values:
                if isinstance(value, bytearray):  # as text, which is not checked
                    connection.execute("INSERT INTO t (v) VALUES (CAST(? AS TEXT))", [bytes(value)])
                else:
                    connection.execute("INSERT INTO t (v) VALUES (?)", [value])
        chosen = {"replication_method": "INCREMENTAL", "replication_key": "v"} if is_incremental else {}
        self.table = Table(Database(f"sqlite:///{path}", **options), "t", **chosen)
        self.file = folder / "quarantine.jsonl"
        self.file.unlink(missing_ok=True)
        self.table.tap.quarantine = str(self.file)

    def run(self) -> tuple[dict[int, Any], list[str]]:
        """Return the written values and by id, and the reasons of the quarantined ones."""
        written = [(row["id"], row["v"]) for row in self.table.run()]
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        kept = [json.loads(line) for line in lines]
        self.raw = [json.loads(line["raw"])["record"] for line in kept]
        self.table.database.close()
        assert len(written) == len(dict(written))
        return dict(written), [line["reason"] for line in kept]

    @property
    def schema(self) -> dict[str, Any]:
        return self.table.catalog.entries["t"].schema["properties"]["v"]


@pytest.mark.parametrize(
    ("declared", "values", "written", "reason"),
    [
        (
            "JSON",
            ['{"a": 1.10}', "{bad", "", "NaN", 5, "null"],
            [{"a": Decimal("1.10")}, 5, None],
            "$.v: expected JSON, got another string",
        ),
        (
            "BOOLEAN",
            [0, 1, "false", "True", "no", 5, 0.5],
            [False, True, False, True],
            "$.v: expected null or a boolean, got ",
        ),
        ("BLOB", [b"\x00\xff", "text", 5, None], ["AP8=", None], "$.v: expected bytes, got a value of another type"),
        ("TEXT", ["a", b"\xff\x00", bytearray(b"\xffA"), "é"], ["a", "é"], "$.v: expected "),
        ("INTEGER", [1, "2", "x", 1.5, b"\xd7\x6d\xf8"], [1, 2], "$.v: expected "),  # bytes whose base64 is 1234
        ("", ["a", 5, b"a"], ["a", "5"], "$.v: expected a value, got bytes"),
        ("DATETIME", ["2026-01-31 10:00:00.50", "soon", 5], ["2026-01-31T10:00:00.50Z"], "$.v: expected "),
    ],
)
def test_a_value_of_another_type_costs_its_row_only(
    tmp_path: Path, declared: str, values: list[Any], written: list[Any], reason: str
) -> None:
    rows = Rows(tmp_path, declared, values, page_rows=2)
    found, quarantined = rows.run()
    assert list(found.values()) == written
    assert len(quarantined) == len(values) - len(written)
    assert all(each.startswith(reason) for each in quarantined)


def test_the_quarantine_has_the_value(tmp_path: Path) -> None:
    rows = Rows(tmp_path, "JSON", ["{bad"])
    rows.run()
    assert rows.raw == [{"id": 1, "v": "{bad"}]


@pytest.mark.parametrize(
    ("declared", "schema"),
    [
        *(
            (name, {"type": TEXT})
            for name in ("STRING", "ENUM", "TIME", "INTERVAL", "INET", "MONEY", "POINT", "GEOMETRY")
        ),
        *((name, {"type": TEXT}) for name in ("", "varchar(20)", "NATIVE CHARACTER(70)", "CLOB", "ANY")),
        *((name, {"type": TEXT, "format": "date-time"}) for name in ("timestamptz", "TIMESTAMP WITH TIME ZONE")),
        *((name, {"type": TEXT, "format": "date-time"}) for name in ("DateTime", "DATETIME2(7)", "SMALLDATETIME")),
        *(
            (name, {"type": ["null", "integer"]})
            for name in ("INT", "unsigned int(11)", "BIGINT", "UNSIGNED BIG INT", "INT8")
        ),
        *(
            (name, {"type": NUMBER})
            for name in ("DECIMAL(9, 2)", "NUM", "double precision", "FLOAT8", "REAL", "NUMERIC")
        ),
        *((name, {"type": TEXT, "contentEncoding": "base64"}) for name in ("LONGBLOB", "VARBINARY(16)", "bytea")),
        ("UUID", {"type": TEXT, "format": "uuid"}),
        ("DATE", {"type": TEXT, "format": "date"}),
        ("boolean", {"type": ["null", "boolean"]}),
    ],
)
def test_declared_types(tmp_path: Path, declared: str, schema: dict[str, Any]) -> None:
    rows = Rows(tmp_path, declared, [])
    assert rows.schema == schema
    entry = rows.table.catalog.entries["t"]
    is_ordered = schema["type"] in (NUMBER, ["null", "integer"]) or schema.get("format") in ("date-time", "date")
    assert ("v" in entry.metadata[()]["valid-replication-keys"]) is is_ordered
    assert entry.metadata["properties", "v"]["sql-datatype"] == declared
    rows.table.database.close()


VALUES = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.integers(-1, 2)
    | st.floats(allow_nan=False)
    | st.text(max_size=5).filter(lambda text: text.isprintable())
    | st.sampled_from(
        ["1", "1.5", "false", "{}", "[1]", "2026-01-31", "2026-01-31 10:00:00", "2026-01-31T10:00:00Z", ""]
    )
    | st.binary(max_size=4)
    | st.binary(max_size=4).map(bytearray)
)
DECLARED = ["BOOLEAN", "INTEGER", "NUMERIC", "DATETIME", "DATE", "UUID", "JSON", "BLOB", "TEXT", "", "TIME"]


def expected(declared: str, value: Any) -> Any:
    """Return what a stored value is as JSON; ``...`` for the quarantine. It shares nothing with the tap."""
    if value is None:
        return None
    if declared == "BLOB":
        return base64.b64encode(value).decode() if isinstance(value, bytes) else ...
    if isinstance(value, bytes):
        return ...
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeError:
            return ...
    if declared == "JSON" and isinstance(value, str):
        try:
            return json.loads(value, parse_constant=int)  # which NaN is not
        except ValueError:
            return ...
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if declared in ("TEXT", "", "TIME", "UUID"):
        return value if isinstance(value, str) else json.dumps(value)
    if value == "":
        return None
    if declared == "BOOLEAN":
        value = value.strip() if isinstance(value, str) else value
        return {"false": False, "0": False, "1": True, 0: False, 1: True}.get(value, ...)
    if declared in ("INTEGER", "NUMERIC", "JSON"):
        if isinstance(value, str) or (declared == "INTEGER" and value != int(value)):
            return ...
        return value
    if isinstance(value, str) and value.startswith("2026-01-31"):
        when = datetime.fromisoformat(value.replace("Z", ""))
        if declared == "DATETIME":
            return when.isoformat() + "Z"
        return value if len(value) == 10 else ...
    return ...


class TestAnyValue:
    @settings(max_examples=60, deadline=None)
    @given(declared=st.sampled_from(DECLARED), values=st.lists(VALUES, max_size=8), page_rows=st.integers(1, 3))
    def test_rows_are_written_as_an_own_reading_says_or_quarantined(
        self, tmp_path_factory: Any, declared: str, values: list[Any], page_rows: int
    ) -> None:
        folder = tmp_path_factory.mktemp("any")
        rows = Rows(folder, declared, values, page_rows=page_rows)
        with opened(folder / "rows.db") as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            stored = connection.execute("SELECT id, v FROM t").fetchall()
        written, quarantined = rows.run()
        right = {key: made for key, value in stored if (made := expected(declared, value)) is not ...}
        assert written == right, stored
        assert len(quarantined) == len(stored) - len(written)

    @settings(max_examples=60, deadline=None)
    @given(
        declared=st.sampled_from(DECLARED),
        values=st.lists(VALUES.filter(lambda value: value is not None), max_size=8),
        page_rows=st.integers(1, 3),
        kill=st.none() | st.integers(1, 8),
    )
    def test_keys_of_any_value_are_read_once_in_pages_and_after_a_kill(
        self, tmp_path_factory: Any, declared: str, values: list[Any], page_rows: int, kill: int | None
    ) -> None:
        path = tmp_path_factory.mktemp("keys") / "rows.db"
        with opened(path) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            connection.execute(f"CREATE TABLE t (v {declared} NOT NULL PRIMARY KEY DESC)")  # else it is the rowid
            for value in values:
                sql = "CAST(? AS TEXT)" if isinstance(value, bytearray) else "?"
                connection.execute(f"INSERT OR IGNORE INTO t VALUES ({sql})", [value])
            stored = [value for (value,) in connection.execute("SELECT v FROM t")]
        table = Table(Database(f"sqlite:///{path}", page_rows=page_rows), "t")
        records = []
        if kill:
            records += table.run(seen=kill)
        records += table.run()
        table.database.close()
        right = [made for value in stored if (made := expected(declared, value)) not in (..., None)]
        texts, wanted = [text_of(row["v"]) for row in records], list(map(text_of, right))
        assert sorted(set(texts) if kill else texts) == sorted(set(wanted) if kill else wanted)


def text_of(value: Any) -> str:
    """Return a text that is equal for equal values, also for 1 and 1.0."""
    return json.dumps(float(value) if type(value) is int else value)


class TestTimes:
    def test_a_time_without_a_zone_is_of_the_naive_zone_also_as_a_bookmark(self, tmp_path: Path) -> None:
        zone = ZoneInfo("Europe/Berlin")
        texts = ["2026-07-01 10:00:00", "2026-07-01 10:00:00.25", "2026-07-01T12:00:00Z", "2026-07-01 23:30:00+02:00"]
        rows = Rows(tmp_path, "DATETIME", texts, naive_zone=zone)
        written, _ = rows.run()
        assert [datetime.fromisoformat(each.replace("Z", "+00:00")) for each in written.values()] == [
            (when if when.tzinfo else when.replace(tzinfo=zone)).astimezone(timezone.utc)
            for when in (
                datetime.fromisoformat(text.replace("Z", "+00:00").replace(".25", ".250000")) for text in texts
            )
        ]

    @pytest.mark.parametrize("page_rows", [1, 2, 3])
    def test_texts_with_t_and_z_are_read_in_pages_once(self, tmp_path: Path, page_rows: int) -> None:
        texts = [f"2026-01-01T0{hour}:00:00Z" for hour in range(5)]
        rows = Rows(tmp_path, "DATETIME", texts, is_incremental=True, page_rows=page_rows)
        written, _ = rows.run()
        assert list(written) == [1, 2, 3, 4, 5]
        assert rows.table.state["bookmarks"]["t"]["v"] == "2026-01-01T04:00:00Z"

    @pytest.mark.parametrize(
        ("texts", "added", "expected"),
        [
            (
                ["2025-12-31T15:00:00-08:00", "2025-12-31T16:30:00-08:00"],
                ["2025-12-31T17:00:00-08:00", "2025-12-31T20:00:00-08:00", "2025-12-31T16:00:00-08:00"],
                [2, 3, 4],
            ),
            (["2026-01-01 01:00", "2026-01-01 02:00"], ["2026-01-01 02:00", "2026-01-01T03:00Z"], [2, 3, 4]),
            (["2026-01-01", "2026-01-02"], ["2026-01-02", "2026-01-01 23:59:59"], [2, 3]),
            (["2026-01-01T10:00:00Z"], ["2026-01-01 11:00:00", "2026-01-01 09:00:00"], [1, 2]),
            (["2026-01-01T10:00:00Z"], ["20260101T110000", None], [1, 2]),
        ],
    )
    def test_a_bookmark_is_compared_as_a_time(
        self, tmp_path: Path, texts: list[str], added: list[str | None], expected: list[int]
    ) -> None:
        rows = Rows(tmp_path, "DATETIME", list(texts), is_incremental=True)
        rows.run()
        with opened(tmp_path / "rows.db") as connection:
            connection.executemany("INSERT INTO t (v) VALUES (?)", [[text] for text in added])
        assert sorted(row["id"] for row in rows.table.run()) == expected
        rows.table.database.close()

    @settings(max_examples=30, deadline=None)
    @given(
        times=st.lists(st.tuples(st.integers(0, 60), st.integers(-12, 14), st.integers(0, 3)), max_size=12),
        kills=st.lists(st.integers(1, 12), max_size=3),
    )
    def test_forms_and_offsets_of_any_kind_lose_no_row_to_a_kill(
        self, tmp_path_factory: Any, times: list[tuple[int, int, int]], kills: list[int]
    ) -> None:
        texts = []
        for hour, offset, form in times:
            local = datetime(2026, 1, 1) + timedelta(hours=hour + (offset if form == 3 else 0))
            forms = ("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.5", f"%Y-%m-%dT%H:%M{offset:+03}:00")
            texts.append(local.strftime(forms[form]))
        rows = Rows(tmp_path_factory.mktemp("forms"), "DATETIME", texts, is_incremental=True, page_rows=2)
        for kill in kills:
            rows.table.run(seen=kill)
        rows.table.run()
        rows.table.database.close()
        assert sorted(row["id"] for row in rows.table.rows.values()) == list(range(1, len(texts) + 1))

    def test_a_date_can_be_the_replication_key(self, tmp_path: Path) -> None:
        rows = Rows(tmp_path, "DATE", ["2026-01-02", "2026-01-01", "2026-01-02"], is_incremental=True)
        rows.run()
        assert sorted(row["id"] for row in rows.table.run()) == [1, 3]
        rows.table.database.close()
