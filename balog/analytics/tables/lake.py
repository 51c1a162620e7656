"""What Iceberg and Delta share: tables in a catalog, each with its own commits.

Neither can commit several tables at once. So one entry of our log commits a batch, as with Parquet files. After that,
its staged rows are appended table by table, each append marked with the batch's id. After a crash, the staged files are
still there, and the next writer appends to the tables without the mark. A reader sees a table with or without a batch,
never with a part of it.
"""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.sessions import cause
from balog.analytics.tables.evolution import steps
from balog.analytics.tables.location import alter, text
from balog.analytics.tables.log import Commit, TableCommit, read_columns
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.store import ROLLUPS, TableBatch, TableError, TablePart


class LakeStore(ParquetStore, ABC):
    """Tables of a catalog, with our log and staging in a separate folder.

    Subclasses implement each step with the statements of their format.
    """

    def __init__(self, spark: SparkSession, location: str, folder: Path) -> None:
        super().__init__(spark, str(folder))
        self._location = location
        self._fresh: set[str] = set()

    # -- for subclasses -------------------------------------------------------------------------------------------

    @abstractmethod
    def _table(self, name: str) -> str:
        """Return a table's name in SQL."""

    @abstractmethod
    def _exists(self, name: str) -> bool:
        """Return whether there is such a table."""

    @abstractmethod
    def _create(self, name: str, columns: t.StructType) -> None:
        """Create a table that is partitioned by ``date``."""

    @abstractmethod
    def _is_marked(self, name: str, mark: str) -> bool:
        """Return whether the table's history has a batch's mark."""

    @abstractmethod
    def _append_rows(self, name: str, rows: DataFrame, mark: str) -> None:
        """Append rows in one commit with a mark."""

    @abstractmethod
    def _replace_days(self, name: str, rows: DataFrame) -> None:
        """Replace all rows of the days of ``rows``, in one commit."""

    @abstractmethod
    def _compact_one(self, name: str) -> str:
        """Compact small files, expire old snapshots, and return a message, or "" if nothing changed."""

    # -- the store ------------------------------------------------------------------------------------------------

    def frame(self, table: str, since: datetime | None = None, until: datetime | None = None) -> DataFrame:
        """Return a table's columns and ``date``; days outside of ``since`` to ``until`` are omitted.

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
        """Merge rollup rows with the same key, and compact small files with the catalog's own statements.

        Raises:
            TableError: the catalog rejected it; each table has its old rows, possibly in fewer files.
        """
        lines = []
        for name in self.names():
            if not tables or name in tables:
                try:
                    changes = [self._merge_rollups(name), self._compact_one(name)]
                except PySparkException as error:
                    raise TableError(f"{name} can't be compacted: {cause(error):.300}", self._location) from None
                lines += [f"{name}: {line}" for line in changes if line]
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
        """Commit a batch; one that is not staged any more is committed already.

        Raises:
            TableError: the catalog rejected it; the batch is still staged, or nothing of it is committed.
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
        self._fresh.discard(commit.batch)  # a second try may find a part of it done
        try:
            for name, change in sorted(commit.tables.items()):
                self._prepare_table(name, change)
                if change.added and (is_fresh or not self._is_marked(name, mark)):
                    files = [file.staged(staging / name) for file in change.added]
                    rows = TablePart(read_columns(change.columns), files).frame(self._spark)
                    self._append_rows(name, rows, mark)
                if change.removed:
                    old = f"`date` < DATE{text(commit.floor)}"
                    self._spark.sql(f"DELETE FROM {self._table(name)} WHERE {old}")  # noqa: S608
        except PySparkException as error:
            raise TableError(
                f"the catalog refused: {cause(error):.300}; the batch is safe in {staging}, the next load appends it",
                self._location,
            ) from None
        shutil.rmtree(staging, ignore_errors=True)

    def _prepare_table(self, name: str, change: TableCommit) -> None:
        """Create the table, or add the columns that it lacks."""
        columns = read_columns(change.columns)
        if not self._exists(name):
            self._create(name, columns)
        for step in steps(self._read(name).schema, columns):
            alter(self._spark, self._table(name), step)


def load_catalog(spark: SparkSession, database: str, location: str, package: str) -> bool:
    """Load a catalog's classes in a session, and return whether a database exists.

    Args:
        spark: the session.
        database: in SQL, with its catalog.
        location: for errors.
        package: the catalog's package, for errors.

    Raises:
        TableError: the classes are missing, or the catalog can't be reached.
    """
    try:
        return spark.catalog.databaseExists(database)
    except Exception as error:  # Java errors are not PySparkExceptions
        reported = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in reported if re.search(r"(Exception|Error)\b", line)), reported[0])
        raise TableError(
            f"its catalog can't be used: {reason.lstrip(': '):.200}; is the package {package} on the cluster, and of "
            "this Spark's version?",
            location,
        ) from None


def _by_day(rows: DataFrame) -> dict[date, int]:
    return {row["date"]: row["count"] for row in rows.groupBy("date").count().collect()}
