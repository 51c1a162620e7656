"""Iceberg tables in a catalog of the session: ``iceberg:CATALOG.DB?location=DIR``.

The log is in ``location``, by default a folder in the user's state directory. The cluster needs Iceberg's package, and
the session's settings need its extensions and the catalog (``spark.sql.catalog.<CATALOG>…``).
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from balog.analytics.tables.lake import LakeStore, load_catalog
from balog.analytics.tables.location import columns_of, parse_location, quoted, state_folder, text
from balog.analytics.tables.log import TableCommit, read_columns
from balog.errors import ConfigError

_PACKAGE = "iceberg-spark-runtime"

_COLUMNS = "balog.columns"
"""The table property with Spark's JSON of the columns; it has the fields' names, which Iceberg's columns can't have."""

_BATCH = "balog-batch"
"""The snapshot property with the batch whose rows it added."""


def open_store(spark: SparkSession, location: str) -> IcebergStore:
    """Open the store of a catalog's database.

    Raises:
        ConfigError: the location is not valid, or the session has no such catalog.
    """
    parsed = parse_location(location)
    catalog, *database = parsed.name.split(".")
    if not spark.conf.get(f"spark.sql.catalog.{catalog}", ""):
        raise ConfigError(
            f"this Spark session has no catalog {catalog}; set spark.sql.catalog.{catalog} and what belongs to it, and "
            "have Iceberg's package on the cluster (org.apache.iceberg:iceberg-spark-runtime)",
            location,
        )
    load_catalog(spark, quoted(catalog, *database), location, _PACKAGE)
    return IcebergStore(spark, location, catalog, database, state_folder(parsed))


class IcebergStore(LakeStore):
    """The Iceberg tables of one database; the log is in ``folder``."""

    def __init__(self, spark: SparkSession, location: str, catalog: str, database: list[str], folder: Path) -> None:
        super().__init__(spark, location, folder)
        self._catalog, self._database = catalog, database

    def names(self) -> list[str]:
        """Return the tables, sorted: those of the log, and those that loads with another log created."""
        found = set(super().names())
        database = quoted(self._catalog, *self._database)
        if load_catalog(self._spark, database, self._location, _PACKAGE):
            others = {row.tableName for row in self._spark.sql(f"SHOW TABLES IN {database}").collect()} - found
            found |= {name for name in others if self.schema(name) is not None}
        return sorted(found)

    def schema(self, table: str) -> t.StructType | None:
        """Return a table's columns without ``date``, or None if balog has no such table."""
        found = super().schema(table)
        if found is None and self._exists(table):
            rows = self._spark.sql(f"SHOW TBLPROPERTIES {self._table(table)}").collect()
            columns = {row.key: row.value for row in rows}.get(_COLUMNS)
            found = read_columns(columns) if columns else None
        return found

    def _table(self, name: str) -> str:
        return quoted(self._catalog, *self._database, name)

    def _exists(self, name: str) -> bool:
        return self._spark.catalog.tableExists(self._table(name))

    def _create(self, name: str, columns: t.StructType) -> None:
        self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(self._catalog, *self._database)}")
        self._spark.sql(
            f"CREATE TABLE {self._table(name)} ({columns_of(columns)}) USING iceberg PARTITIONED BY (`date`)"
        )

    def _prepare_table(self, name: str, change: TableCommit) -> None:
        super()._prepare_table(name, change)
        if change.added:
            columns = f"{text(_COLUMNS)} = {text(change.columns)}"
            self._spark.sql(f"ALTER TABLE {self._table(name)} SET TBLPROPERTIES ({columns})")

    def _is_marked(self, name: str, mark: str) -> bool:
        snapshots = self._spark.table(f"{self._table(name)}.snapshots")
        return not snapshots.where(f"summary['{_BATCH}'] = {text(mark)}").isEmpty()

    def _append_rows(self, name: str, rows: DataFrame, mark: str) -> None:
        rows.writeTo(self._table(name)).option(f"snapshot-property.{_BATCH}", mark).append()

    def _replace_days(self, name: str, rows: DataFrame) -> None:
        rows.writeTo(self._table(name)).overwritePartitions()

    def _compact_one(self, name: str) -> str:
        system = f"CALL {quoted(self._catalog)}.system"
        table = text(".".join([*self._database, name]))
        done = self._spark.sql(f"{system}.rewrite_data_files(table => {table})").first()
        self._spark.sql(f"{system}.expire_snapshots(table => {table})")  # keeps the snapshots of the last five days
        if done is None or not done.rewritten_data_files_count:
            return ""
        return f"{done.rewritten_data_files_count:,} files became {done.added_data_files_count:,}"
