"""What Iceberg and Delta have in common: tables that others keep, each with commits of its own.

Neither commits several tables at once. So a batch is decided by one entry of our log, as with Parquet files; after that
its staged rows are appended table by table, each append marked with the batch's id. Who was killed on the way leaves
the staged files, and the next one who writes appends to those tables alone that don't have the mark. A reader sees a
table with or without a batch, never with a part of it.
"""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.sessions import cause
from balog.analytics.tables.catalogs import alter, text
from balog.analytics.tables.evolution import steps
from balog.analytics.tables.log import Commit, TableCommit, read_columns
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.store import ROLLUPS, StagedFile, TableBatch, TableError, TablePart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LakeStore", "reach"]


class LakeStore(ParquetStore, ABC):
    """Tables of a catalog, with our log and staging in a folder beside.

    A kind of tables says how each step is done with its own statements.
    """

    def __init__(self, spark: SparkSession, location: str, folder: Path) -> None:
        super().__init__(spark, str(folder))
        self._location = location
        self._fresh: set[str] = set()

    # -- for each kind --------------------------------------------------------------------------------------------

    @abstractmethod
    def _table(self, name: str) -> str:
        """Give a table's name in SQL."""

    @abstractmethod
    def _exists(self, name: str) -> bool:
        """Tell whether there is such a table."""

    @abstractmethod
    def _create(self, name: str, columns: t.StructType) -> None:
        """Make a table that is partitioned by ``date``."""

    @abstractmethod
    def _is_marked(self, name: str, mark: str) -> bool:
        """Tell whether the table's history has a batch's mark."""

    @abstractmethod
    def _append_rows(self, name: str, rows: DataFrame, mark: str) -> None:
        """Append rows in one commit of the table that bears a mark."""

    @abstractmethod
    def _replace_days(self, name: str, rows: DataFrame) -> None:
        """Put rows in place of all that the table has of their days, in one commit of the table."""

    @abstractmethod
    def _compact_one(self, name: str) -> str:
        """Rewrite small files, and let go what only old snapshots need; say what was done, if anything."""

    # -- the store ------------------------------------------------------------------------------------------------

    def frame(self, table: str, since: datetime | None = None, until: datetime | None = None) -> DataFrame:
        """Give a table's columns and ``date``; days wholly outside of ``since`` to ``until`` are left out.

        Raises:
            TableError: there is no such table.
        """
        self._log.refresh()
        columns = self.schema(table)
        if columns is None or not self._exists(table):
            raise TableError(f"no table {table}; there are: {', '.join(self.names()) or 'none'}", self._location)
        frame = self._read(table)
        for moment, is_within in ((since, f.col("date").__ge__), (until, f.col("date").__le__)):
            if moment is not None:
                frame = frame.where(is_within(f.lit(moment.astimezone(timezone.utc).date())))
        return frame.select(*(f.col(f"`{name}`") for name in [*columns.names, "date"]))

    def _read(self, name: str) -> DataFrame:
        return self._spark.table(self._table(name))

    def compact(self, tables: Sequence[str] = ()) -> list[str]:
        """Make rollup rows of one key one, and have small files rewritten by the catalog's own means.

        Raises:
            TableError: the catalog refused; then a table has what it had, or the same in fewer files.
        """
        lines = []
        for name in self.names():
            if not tables or name in tables:
                try:
                    told = [self._merge_rollups(name), self._compact_one(name)]
                except PySparkException as error:
                    raise TableError(f"{name} can't be compacted: {cause(error):.300}", self._location) from None
                lines += [f"{name}: {line}" for line in told if line]
        return lines

    def _merge_rollups(self, name: str) -> str:
        from balog.analytics.tables.compaction import merged_rollups

        columns = self.schema(name)
        if name not in ROLLUPS.values() or columns is None or "hour" not in columns.names:
            return ""
        rows = self._read(name)
        had, wanted = _by_day(rows), _by_day(merged_rollups(name, rows))
        days = [day for day, count in had.items() if wanted[day] < count]
        if not days:
            return ""
        self._replace_days(name, merged_rollups(name, rows.where(f.col("date").isin(days))))
        return f"{sum(had[day] for day in days):,} rows became {sum(wanted[day] for day in days):,}"

    def commit(self, batch: TableBatch) -> None:
        """Take a batch; what is not staged any more was taken before.

        Raises:
            TableError: the catalog refused; then the batch is safe, or nothing of it is there.
        """
        staged = [file.path for part in batch.parts.values() for file in part.files]
        if not staged or any(map(os.path.exists, staged)):
            super().commit(batch)

    def _append(self, commit: Commit) -> None:
        self._fresh.add(commit.batch)
        super()._append(commit)

    def _finish_one(self, commit: Commit) -> None:
        staging = self._staging / commit.batch
        mark = f"{commit.batch} {commit.at}"  # a later load of other rows may have the same id
        is_fresh = commit.batch in self._fresh
        self._fresh.discard(commit.batch)  # if this is tried again, it may have been done in part
        try:
            for name, change in sorted(commit.tables.items()):
                self._bring(name, change)
                if change.added and (is_fresh or not self._is_marked(name, mark)):
                    self._append_rows(name, _rows(self._spark, staging / name, change), mark)
                if change.removed:
                    old = f"`date` < DATE{text(commit.floor)}"
                    self._spark.sql(f"DELETE FROM {self._table(name)} WHERE {old}")  # noqa: S608
        except PySparkException as error:
            raise TableError(
                f"the catalog refused: {cause(error):.300}; the batch is safe in {staging}, the next load appends it",
                self._location,
            ) from None
        shutil.rmtree(staging, ignore_errors=True)

    def _bring(self, name: str, change: TableCommit) -> None:
        """Make the table, or give it the columns that it lacks."""
        columns = read_columns(change.columns)
        if not self._exists(name):
            self._create(name, columns)
        for step in steps(self._read(name).schema, columns):
            alter(self._spark, self._table(name), step)


def reach(spark: SparkSession, database: str, location: str, package: str) -> bool:
    """Have a session load a catalog's classes; tell whether a database of it is there.

    Args:
        database: in SQL, with its catalog.

    Raises:
        TableError: the classes are not there, or the catalog can't be reached.
    """
    try:
        return spark.catalog.databaseExists(database)
    except Exception as error:  # Java's are no PySparkException
        told = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = next((line for line in told if re.search(r"(Exception|Error)\b", line)), told[0])
        raise TableError(
            f"its catalog can't be used: {said.lstrip(': '):.200}; is the package {package} on the cluster, and of "
            "this Spark's version?",
            location,
        ) from None


def _rows(spark: SparkSession, folder: Path, change: TableCommit) -> DataFrame:
    files = [
        StagedFile(os.path.join(folder, file.path), date.fromisoformat(file.day), file.rows, file.size)
        for file in change.added
    ]
    return TablePart(read_columns(change.columns), files).frame(spark)


def _by_day(rows: DataFrame) -> dict[date, int]:
    return {row["date"]: row["count"] for row in rows.groupBy("date").count().collect()}
