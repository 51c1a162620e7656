"""The Parquet store, registered in a Hive metastore: ``hive:DB?location=DIR``.

The folder's log defines the tables, and the metastore follows it. All tables are external: dropping one keeps its
files. After a crash, the next writer registers what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from balog.analytics.sessions import cause
from balog.analytics.tables.catalogs.location import columns_of, parse_location, quoted, text
from balog.analytics.tables.log import Commit
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.store import TableError
from balog.common.errors import ConfigError


def open_store(spark: SparkSession, location: str) -> HiveStore:
    """Open the store of a database.

    Raises:
        ConfigError: the location is not valid, or the session has no Hive.
    """
    database, folder = parse_location(location)
    if spark.conf.get("spark.sql.catalogImplementation", "") != "hive":
        raise ConfigError("this Spark session has no Hive; set spark.sql.catalogImplementation=hive", location)
    return HiveStore(spark, location, database, folder)


class HiveStore(ParquetStore):
    """Tables as Parquet files below ``folder``, registered in the metastore as tables of ``database``."""

    def __init__(self, spark: SparkSession, location: str, database: str, folder: str) -> None:
        super().__init__(spark, folder)
        self.location, self._database = location, database

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder as the Parquet store does, and register what the metastore lacks.

        Raises:
            TableError: another process is writing, the folder can't be written, or the metastore can't be reached.
        """
        with super().writing():
            self._register(sorted(self._log.state.tables))
            yield

    def _finish_one(self, commit: Commit) -> None:
        super()._finish_one(commit)
        self._register(sorted(commit.tables))

    def _register(self, tables: Sequence[str]) -> None:
        """Register tables of the log in the metastore."""
        try:
            if not self._spark.catalog.databaseExists(self._database):  # Hive logs an error when it is created again
                self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(self._database)}")
            for name in tables:
                self._register_one(name)
        except PySparkException as error:
            raise TableError(
                f"the metastore refused: {cause(error):.300}; the files are safe, the next load registers them",
                self.location,
            ) from None

    def _register_one(self, name: str) -> None:
        table, folder = quoted(self._database, name), self._root / name
        columns = self.schema(name)
        if columns is None:
            return
        if self._spark.catalog.tableExists(f"{quoted(self._database)}.{quoted(name)}"):
            self._check(name, folder)
            registered = self._spark.table(table).drop("date").schema
            if registered.simpleString().lower() != columns.simpleString().lower():
                # Spark can't add a column inside a struct of a Hive table, or widen a type. Dropping keeps the files.
                self._spark.sql(f"DROP TABLE {table}")
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {table} ({columns_of(columns)}) USING parquet PARTITIONED BY (`date`) "
            f"LOCATION {text(folder.as_uri())}"
        )
        if folder.is_dir():  # a table without rows has none
            self._spark.sql(f"MSCK REPAIR TABLE {table} SYNC PARTITIONS")
        self._spark.catalog.refreshTable(table)

    def _check(self, name: str, folder: Path) -> None:
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {quoted(self._database, name)}").collect()
        described = {row.col_name: row.data_type for row in rows}
        registered = Path(unquote(urlsplit(described.get("Location", "")).path))
        if described.get("Type") != "EXTERNAL" or registered != folder:
            raise TableError(
                f"the metastore has another table {name}, at {registered}; drop it, or load into another database",
                self.location,
            )
