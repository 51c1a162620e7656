"""Opens and reads tables at a location: a folder of Parquet files, or a catalog.

Catalogs are ``hive:DB?location=DIR`` and ``delta:DIR``. Their tables are in a folder on a disk that the driver and all
executors see, with the log of loads and the staged batches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from balog.analytics.tables.log import has_log
from balog.analytics.tables.store import TableError
from balog.common.errors import ConfigError, MissingExtraError
from balog.common.local_path import check_variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

    from balog.analytics.tables.parquet import ParquetStore

_NAME = re.compile(r"\w+")


def parse_location(location: str) -> tuple[str, str]:
    """Parse a location in a catalog.

    Returns:
        The database and its tables' folder; the tables' folder and "" for Delta.

    Raises:
        ConfigError: it is not of the catalog's form.
        MissingExtraError: the catalog's package is not installed.
    """
    kind, _, rest = location.partition(":")
    name, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    folder = options.pop("location", "")
    if kind == "hive":
        if not _NAME.fullmatch(name) or options or not folder:
            raise ConfigError("is not of the form hive:DATABASE?location=FOLDER", location)
    elif not name or options or folder:
        raise ConfigError("is not of the form delta:FOLDER", location)
    if "://" in folder or (kind == "delta" and "://" in name.removeprefix("file://")):
        raise ConfigError("location has to be a folder on a disk that all executors see", location)
    if kind == "delta" and find_spec("deltalake") is None:
        raise MissingExtraError("tables in delta:…", "delta")
    return name, folder


def session_settings(location: str) -> dict[str, str]:
    """Return the Spark settings that a session for a location needs."""
    return {"spark.sql.catalogImplementation": "hive"} if location.startswith("hive:") else {}


def quoted(*names: str) -> str:
    """Return a name of several parts as a quoted identifier of Spark's SQL."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def text(value: str) -> str:
    """Return a string literal of Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def columns_of(schema: StructType) -> str:
    """Return the column list of CREATE TABLE, ``date`` last."""
    return ", ".join([*(f"{quoted(column.name)} {_ddl(column.dataType)}" for column in schema), "`date` date"])


def _ddl(kind: DataType) -> str:
    """Return a type in Spark's SQL, with every name quoted."""
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return "struct<" + ", ".join(f"{quoted(field.name)}: {_ddl(field.dataType)}" for field in kind) + ">"
    if isinstance(kind, t.ArrayType):
        return f"array<{_ddl(kind.elementType)}>"
    if isinstance(kind, t.MapType):
        return f"map<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return kind.simpleString()


CATALOGS = ("hive:", "delta:")
"""Prefixes of locations in a catalog; ``balog.analytics.tables.<catalog>.open_store(spark, location)`` opens one."""


def check_location(location: str) -> None:
    """Check that tables can be at a location, before anything is written there.

    Raises:
        ConfigError: it is empty, the URL of a store, in an unknown catalog, or a file.
        MissingExtraError: the catalog's package is not installed.
    """
    if not location.strip():
        raise ConfigError("the tables' place is empty; give a folder, or . for this one", "--tables")
    if re.match(r"[A-Za-z][\w+.-]+:", location) and not location.startswith((*CATALOGS, "file:")):
        raise ConfigError(
            "is not a folder; give one (./NAME where it has a colon), hive:… or delta:…", location.partition("?")[0]
        )
    if location.startswith(CATALOGS):
        parse_location(location)
    check_variables(location, location.partition("?")[0])
    if os.path.isfile(location):
        raise ConfigError("is a file; give a folder for the tables", location)


def is_tables(location: str) -> bool:
    """Return whether tables are at a location: it names a catalog, or a folder that ``balog load`` wrote."""
    return location.startswith(CATALOGS) or has_log(location)


def are_tables(sources: Sequence[str]) -> bool:
    """Return whether a report's source is the location of tables.

    Raises:
        ConfigError: other sources are given with it.
    """
    of_tables = [source for source in sources if is_tables(source)]
    if of_tables and len(sources) > 1:
        raise ConfigError("tables can't be combined with other sources; leave those out", of_tables[0])
    return bool(of_tables)


def open_store(spark: SparkSession, location: str) -> ParquetStore:
    """Open the store at a location, which need not exist yet.

    Raises:
        ConfigError, MissingExtraError: see ``check_location``.
        TableError: the store can't be reached.
    """
    check_location(location)
    catalog = next((name for name in CATALOGS if location.startswith(name)), "")
    if catalog:
        module = import_module(f"balog.analytics.tables.catalogs.{catalog[:-1]}")
        store: ParquetStore = module.open_store(spark, location)
        return store
    from balog.analytics.tables.parquet import ParquetStore

    return ParquetStore(spark, location)


def open_tables(spark: SparkSession, location: str) -> ParquetStore:
    """Open the tables at a location.

    Raises:
        TableError: there are none.
    """
    if not is_tables(location):
        raise TableError("there are no tables; load some: balog load SOURCE --tables PLACE", location)
    return open_store(spark, location)
