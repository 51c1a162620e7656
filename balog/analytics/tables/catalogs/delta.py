"""The Parquet store with a Delta log for each table, for all engines that read Delta: ``delta:DIR``.

The folder's log defines the tables. A commit is repeated in the Delta log of each table that it changes, after its
files are moved and before the files that it replaces are removed. Each transaction has the number of the commit, which
lets one process at a time write it. After a crash, the next process that finishes the commit completes the Delta logs.

An append can't change a column's type in Delta. Where a column widens, the table's Delta log begins anew.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from pyspark.sql import SparkSession

from balog.analytics.tables.catalogs.location import parse_location
from balog.analytics.tables.log import FOLDER, Commit, TableFile, TableState, read_columns
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.store import TableError
from balog.analytics.tables.table_schema import needs_widening

_APP = "balog"  # of the transactions
_SETTINGS = {"delta.checkpointInterval": "20"}
_TRIES = 3


def open_store(spark: SparkSession, location: str) -> DeltaStore:
    """Open the store of a folder of Delta tables.

    Raises:
        ConfigError: the location is not valid.
    """
    return DeltaStore(spark, location)


class DeltaStore(ParquetStore):
    """Tables as Parquet files below a folder, each with a Delta log."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        super().__init__(spark, parse_location(location)[0])
        self.location = location

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder as the Parquet store does, and complete the Delta logs.

        Raises:
            TableError: another process is writing, or the folder can't be written.
        """
        with super().writing():
            self._mirror(self._log.state.tables)
            yield

    def _publish(self, commit: Commit) -> None:
        self._mirror(commit.tables)

    def _mirror(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            for attempt in range(_TRIES):
                try:
                    self._mirror_one(name)
                    break
                except (DeltaError, OSError) as error:  # another process may have written the same commit
                    if attempt == _TRIES - 1:
                        raise TableError(
                            f"the Delta log of {name} can't be written: {error!s:.300}; the batch is safe, and the "
                            "next load completes it",
                            self.location,
                        ) from None

    def _mirror_one(self, name: str) -> None:
        table, number, folder = self._log.state.tables[name], self._log.state.number, str(self._root / name)
        schema, properties = _schema(table), CommitProperties(app_transactions=[Transaction(_APP, number)])
        if DeltaTable.is_deltatable(folder):
            delta = DeltaTable(folder)
            if (delta.transaction_version(_APP) or 0) >= number:
                return
            if not needs_widening(read_columns(delta.schema().to_json()), read_columns(schema.to_json())):
                if new := [column for column in schema.fields if column not in delta.schema().fields]:
                    delta.alter.add_columns(new)
                    delta = DeltaTable(folder)
                if actions := _difference(delta, table):
                    delta.create_write_transaction(actions, "append", schema, ["date"], commit_properties=properties)
                return
            self._forget(name)
        create_table_with_add_actions(
            folder,
            schema,
            [_add(file) for file in table.files.values()],
            partition_by=["date"],
            configuration=_SETTINGS,
            commit_properties=properties,
        )

    def _forget(self, name: str) -> None:
        """Remove a table's Delta log at once: a reader finds all of it or nothing."""
        old = self._root / FOLDER / f"delta-{os.urandom(8).hex()}"
        os.rename(self._root / name / "_delta_log", old)
        shutil.rmtree(old, ignore_errors=True)


def _schema(table: TableState) -> Schema:
    """Return a table's columns, with ``date``. Delta has Spark's JSON of a schema."""
    date = {"name": "date", "type": "date", "nullable": True, "metadata": {}}
    return Schema.from_json(json.dumps({"type": "struct", "fields": [*json.loads(table.columns)["fields"], date]}))


def _difference(delta: DeltaTable, table: TableState) -> list[AddAction | RemoveAction]:
    """Return what makes the files of a Delta table those of the log."""
    listed = pa.table(delta.get_add_actions())
    have = dict(zip(listed.column("path").to_pylist(), listed.column("num_records").to_pylist()))
    gone = [path for path in have if path not in table.files]
    added = [file for path, file in table.files.items() if path not in have]
    # Streams of Delta skip the files of a compaction.
    is_same = bool(gone) and sum(have[path] for path in gone) == sum(file.rows for file in added)
    now = _milliseconds()
    removed = [RemoveAction(path, not is_same, now, partition_values={"date": _day(path)}) for path in gone]
    return [*removed, *(_add(file, data_change=not is_same) for file in added)]


def _add(file: TableFile, *, data_change: bool = True) -> AddAction:
    stats = json.dumps({"numRecords": file.rows})
    return AddAction(file.path, file.size, {"date": file.day}, _milliseconds(), data_change, stats)


def _day(path: str) -> str:
    return TableFile(path, 0, 0).day


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000
