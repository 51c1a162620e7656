"""Delta Lake tables below one folder or URL: ``delta:DIR``, each at ``DIR/<table>``.

The log is in ``DIR/_balog``, or below ``location`` if the folder is not on a disk. The cluster needs Delta's package,
and the session's settings need its extension and catalog.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from balog.analytics.tables.lake import LakeStore, load_catalog
from balog.analytics.tables.location import columns_of, parse_location, quoted, state_folder, text
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
    load_catalog(spark, "spark_catalog.default", location, "delta-spark")
    parsed = parse_location(location)
    url = urlsplit(parsed.name)
    if url.scheme not in ("", "file"):
        return DeltaStore(spark, location, parsed.name.rstrip("/"), state_folder(parsed))
    root = Path(unquote(url.path) if url.scheme else parsed.name).absolute()
    return DeltaStore(spark, location, str(root), Path(parsed.folder).absolute() if parsed.folder else root)


class DeltaStore(LakeStore):
    """Delta tables below ``root``; the log is in ``folder``."""

    def __init__(self, spark: SparkSession, location: str, root: str, folder: Path) -> None:
        super().__init__(spark, location, folder)
        self._tables = root

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
