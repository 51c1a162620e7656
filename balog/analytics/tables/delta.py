"""Delta Lake tables below one folder or URL: ``delta:DIR``, each at ``DIR/<table>``.

The log is in ``DIR/_balog``, or below ``location`` if the folder is not on a disk. The cluster needs Delta's package,
and the session's settings need its extension and catalog.

Delta can't commit several tables at once. So one entry of our log commits a batch, as with Parquet files. After that,
its staged rows are appended table by table, each append marked with the batch's id. After a crash, the staged files are
still there, and the next writer appends to the tables without the mark. A reader sees a table with or without a batch,
never with a part of it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.sessions import cause
from balog.analytics.tables.evolution import steps
from balog.analytics.tables.location import alter, columns_of, parse_location, quoted, state_folder, text
from balog.analytics.tables.log import Commit, TableCommit, read_columns
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.store import ROLLUPS, TableBatch, TableError, TablePart
from balog.errors import ConfigError


def open_store(spark: SparkSession, location: str) -> DeltaStore:
    """Open the store of a folder of Delta tables.

    Raises:
        ConfigError: the location is not valid, or the session does not have Delta.
    """
    if "DeltaCatalog" not in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        raise ConfigError(
            "Delta is not in this Spark session; have its package on the cluster (io.delta:delta-spark) and set "
            "spark.sql.extensions and spark.sql.catalog.spark_catalog as its page says",
            location,
        )
    _load_classes(spark, location)
    parsed = parse_location(location)
    url = urlsplit(parsed.name)
    if url.scheme not in ("", "file"):
        return DeltaStore(spark, location, parsed.name.rstrip("/"), state_folder(parsed))
    root = Path(unquote(url.path) if url.scheme else parsed.name).absolute()
    return DeltaStore(spark, location, str(root), Path(parsed.folder).absolute() if parsed.folder else root)


class DeltaStore(ParquetStore):
    """Delta tables below ``root``; the log and staged batches are in ``folder``."""

    def __init__(self, spark: SparkSession, location: str, root: str, folder: Path) -> None:
        super().__init__(spark, str(folder))
        self._location = location
        self._fresh: set[str] = set()
        self._tables = root

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

    def _path(self, name: str) -> str:
        return f"{self._tables}/{name}"

    def _table(self, name: str) -> str:
        return f"delta.{quoted(self._path(name))}"

    def _exists(self, name: str) -> bool:
        try:
            self._spark.sql(f"DESCRIBE DETAIL {self._table(name)}")
        except PySparkException as error:
            if (error.getCondition() or "").startswith(("DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST")):
                return False
            raise
        return True

    def _create(self, name: str, columns: t.StructType) -> None:
        self._spark.sql(
            f"CREATE TABLE {self._table(name)} ({columns_of(columns)}) USING delta PARTITIONED BY (`date`) "
            f"TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        )

    def _read(self, name: str) -> DataFrame:
        return self._spark.read.format("delta").load(self._path(name))

    def _is_marked(self, name: str, mark: str) -> bool:
        history = self._spark.sql(f"DESCRIBE HISTORY {self._table(name)}")
        return not history.where(f"userMetadata = {text(mark)}").isEmpty()

    def _append_rows(self, name: str, rows: DataFrame, mark: str) -> None:
        rows.write.format("delta").mode("append").option("userMetadata", mark).save(self._path(name))

    def _replace_days(self, name: str, rows: DataFrame) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.save(self._path(name))

    def _compact_one(self, name: str) -> str:
        done = self._spark.sql(f"OPTIMIZE {self._table(name)}").first()
        self._spark.sql(f"VACUUM {self._table(name)}")  # keeps the files of the versions of the last week
        if done is None or not done.metrics.numFilesRemoved:
            return ""
        return f"{done.metrics.numFilesRemoved:,} files became {done.metrics.numFilesAdded:,}"


def _load_classes(spark: SparkSession, location: str) -> None:
    """Load Delta's classes in a session.

    Raises:
        TableError: the classes are missing, or the catalog can't be reached.
    """
    try:
        spark.catalog.databaseExists("spark_catalog.default")
    except Exception as error:  # Java errors are not PySparkExceptions
        reported = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in reported if re.search(r"(Exception|Error)\b", line)), reported[0])
        raise TableError(
            f"its catalog can't be used: {reason.lstrip(': '):.200}; is the package delta-spark on the cluster, and of "
            "this Spark's version?",
            location,
        ) from None


def _by_day(rows: DataFrame) -> dict[date, int]:
    return {row["date"]: row["count"] for row in rows.groupBy("date").count().collect()}
