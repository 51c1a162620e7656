"""Locations of tables: a folder of Parquet files, or a catalog named ``hive:…``, ``iceberg:…`` or ``delta:…``."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING

from balog.analytics.tables.log import has_log
from balog.errors import ConfigError
from balog.local_path import check_variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from balog.analytics.tables.store import TableStore


CATALOGS = ("hive:", "iceberg:", "delta:")
"""Prefixes of locations in a catalog; ``balog.analytics.tables.<catalog>.open_store(spark, location)`` opens one."""


def check_location(location: str) -> None:
    """Check that tables can be at a location, before anything is written there.

    Raises:
        ConfigError: it is empty, the URL of a store, in an unknown catalog, or a file.
    """
    if not location.strip():
        raise ConfigError("the tables' place is empty; give a folder, or . for this one", "--tables")
    if re.match(r"[A-Za-z][\w+.-]+:", location) and not location.startswith((*CATALOGS, "file:")):
        want = "hive:…, iceberg:… or delta:… (their files may be on a store)"
        raise ConfigError(
            f"is not a folder; give one (./NAME where it has a colon), or {want}", location.partition("?")[0]
        )
    check_variables(location, location.partition("?")[0])
    if os.path.isfile(location):
        raise ConfigError("is a file; give a folder for the tables", location)


def is_tables(location: str) -> bool:
    """Return whether tables are at a location: it names a catalog, or a folder that ``balog load`` wrote."""
    return location.startswith(CATALOGS) or has_log(location)


def open_store(spark: SparkSession, location: str) -> TableStore:
    """Open the store at a location, which need not exist yet.

    Raises:
        ConfigError: the location is not valid, see ``check_location``.
        TableError: the store can't be reached.
    """
    catalog = next((name for name in CATALOGS if location.startswith(name)), "")
    if catalog:
        store: TableStore = import_module(f"balog.analytics.tables.{catalog[:-1]}").open_store(spark, location)
        return store
    check_location(location)
    from balog.analytics.tables.parquet import ParquetStore

    return ParquetStore(spark, location)
