"""Any reader of Delta finds the rows of the tables, at each commit and after a crash.

The oracles are deltalake's own reader, DuckDB over the files that the Delta log lists, and the plain files.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import types as t

pytest.importorskip("deltalake", reason="deltalake is not installed")
import deltalake

from balog.analytics.tables.catalogs.delta import DeltaStore
from balog.analytics.tables.catalogs.location import check_location, open_store
from balog.analytics.tables.loader import load
from balog.analytics.tables.store import StagedFile, TableBatch, TablePart
from balog.common.errors import ConfigError
from tests.analytics.tables.test_parquet_store import COLUMNS, DAY, ids, stage


def commit(place: Path, batch: str, *days: int) -> None:
    store = DeltaStore(None, f"delta:{place}")  # type: ignore[arg-type]
    with store.writing():
        store.commit(TableBatch(batch, {"events": stage(store, batch, *days), "log": TablePart(COLUMNS)}))


def delta_rows(place: Path, table: str = "events") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = deltalake.DeltaTable(str(place / table)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def delta_ids(place: Path) -> list[str]:
    return [row["id"] for row in delta_rows(place)]


def test_each_commit_is_one_version_with_its_rows_and_days(place: Path) -> None:
    commit(place, "a", 0, 1)
    commit(place, "b", 1)
    assert delta_rows(place) == [
        {"id": "a-0", "timestamp": DAY, "date": date(2026, 11, 20)},
        {"id": "a-1", "timestamp": DAY + timedelta(days=1), "date": date(2026, 11, 21)},
        {"id": "b-1", "timestamp": DAY + timedelta(days=1), "date": date(2026, 11, 21)},
    ]
    delta = deltalake.DeltaTable(str(place / "events"))
    assert (delta.version(), delta.metadata().partition_columns) == (1, ["date"])
    delta.load_as_version(0)
    assert sorted(delta.to_pyarrow_table().column("id").to_pylist()) == ["a-0", "a-1"]
    assert delta_rows(place, "log") == []


def test_days_that_keep_removes_are_removed(place: Path) -> None:
    commit(place, "a", 0, 1, 2)
    store = DeltaStore(None, f"delta:{place}")  # type: ignore[arg-type]
    with store.writing():
        store.expire(date(2026, 11, 22))
    assert delta_ids(place) == ids(place) == ["a-2"]


@pytest.mark.parametrize("step", ["create_table_with_add_actions", "create_write_transaction"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_kill_at_a_delta_log_the_next_load_completes_it(place: Path, step: str, when: str) -> None:
    first = step.startswith("create_table")
    if not first:
        commit(place, "a", 0)
    program = f"""
import os, signal, sys
from pathlib import Path
from balog.analytics.tables.catalogs import delta
from tests.analytics.tables.test_delta import commit
owner = delta if {first} else delta.DeltaTable
whole = getattr(owner, {step!r})
def killed(*given, **named):
    if {when!r} == "after":
        whole(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(owner, {step!r}, killed)
commit(Path({str(place)!r}), "b", 0, 1)
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    assert subprocess.run([sys.executable, "-c", program], env=env).returncode == -signal.SIGKILL
    commit(place, "c", 2)
    assert delta_ids(place) == ids(place) == [*([] if first else ["a-0"]), "b-0", "b-1", "c-2"]


def test_a_late_process_does_not_undo_a_newer_commit(place: Path) -> None:
    commit(place, "a", 0)
    late = DeltaStore(None, f"delta:{place}")  # type: ignore[arg-type]
    commit(place, "b", 1)
    late._mirror(["events"])
    assert delta_ids(place) == ["a-0", "b-1"]


def test_two_processes_at_the_same_commit_write_it_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from balog.analytics.tables.catalogs import delta

    commit(place, "a", 0)
    whole = delta.DeltaTable.create_write_transaction

    def raced(table: Any, *given: Any, **named: Any) -> None:
        monkeypatch.setattr(delta.DeltaTable, "create_write_transaction", whole)
        DeltaStore(None, f"delta:{place}")._mirror(["events"])  # type: ignore[arg-type]
        whole(table, *given, **named)

    monkeypatch.setattr(delta.DeltaTable, "create_write_transaction", raced)
    commit(place, "b", 1)
    assert delta_ids(place) == ["a-0", "b-1"]
    assert deltalake.DeltaTable(str(place / "events")).version() == 1


def test_a_column_that_widens_is_read_with_its_new_type(place: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, (arrow, spark) in enumerate([(pa.int32(), t.IntegerType()), (pa.int64(), t.LongType())]):
        store = DeltaStore(None, f"delta:{place}")  # type: ignore[arg-type]
        with store.writing():
            path = Path(store.staging(f"w{number}"), "thing", "date=2026-11-20", f"part-{number}.parquet")
            path.parent.mkdir(parents=True)
            pq.write_table(pa.table({"id": [str(number)], "n": pa.array([number * 2**31 - number], arrow)}), path)
            files = [StagedFile(str(path), date(2026, 11, 20), 1, path.stat().st_size)]
            schema = t.StructType([t.StructField("id", t.StringType()), t.StructField("n", spark)])
            store.commit(TableBatch(f"w{number}", {"thing": TablePart(schema, files)}))
    assert [row["n"] for row in delta_rows(place, "thing")] == [0, 2**31 - 1]


@pytest.mark.spark
def test_loads_that_grow_and_a_compaction_have_the_rows_of_the_plain_files(
    spark: Any, place: Path, dump: Callable[..., Path], rows: Callable[..., list[tuple[Any, ...]]]
) -> None:
    def check() -> None:
        for table in store.names():
            delta = deltalake.DeltaTable(str(place / table))
            assert [column.name for column in delta.schema().fields if column.name != "date"] == store.schema(
                table
            ).names
            files, count = delta.file_uris(), delta.to_pyarrow_table().num_rows
            if not files:
                assert not list(place.glob(f"{table}/date=*/*.parquet"))
                continue
            with duckdb.connect() as connection:
                connection.execute("SET TimeZone = 'UTC'")
                listed = "SELECT * FROM read_parquet($files, union_by_name=true, hive_partitioning=true) ORDER BY ALL"
                found = connection.execute(listed, {"files": files}).fetchall()
            assert (len(found), found) == (count, rows(place, table))

    store = open_store(spark, f"delta:{place}")
    with store.writing():
        load(spark, store, [str(dump("a.jsonl", *range(30)))])
        check()
        grown = dump("b.jsonl", *range(20, 50), day="2026-11-21")
        grown.write_text(grown.read_text().replace('"item": {', '"later": 1.5, "item": {"inner": {"z": "new"}, '))
        load(spark, store, [str(grown)])
        check()
        load(spark, store, [str(dump("c.jsonl", *range(50, 70), lines=("{ broken",)))])
        check()
        assert store.compact()
        check()
    orders = delta_rows(place, "order")
    assert {row["item"]["inner"]["z"] for row in orders if row["later"]} == {"new"}
    assert {row["item"]["inner"] for row in orders if not row["later"]} == {None}
    last = max((place / "events" / "_delta_log").glob("*.json")).read_text().splitlines()
    changes = [action[kind] for action in map(json.loads, last) for kind in ("add", "remove") if kind in action]
    assert {change["dataChange"] for change in changes} == {False}  # a stream of Delta skips them


@pytest.mark.parametrize("location", ["delta:", "delta:s3://bucket/tables", "delta:/lake?location=/other"])
def test_a_place_that_is_not_a_folder_is_rejected(location: str) -> None:
    with pytest.raises(ConfigError):
        check_location(location)
