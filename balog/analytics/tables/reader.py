"""Opens and reads tables at a location: a folder of Parquet files, or a catalog.

A catalog is named ``hive:…``, ``iceberg:…`` or ``delta:…``.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING

from balog.analytics.tables.log import has_log
from balog.analytics.tables.store import ROLLUPS, TableError
from balog.errors import ConfigError
from balog.local_path import check_variables

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from balog.analytics.rollups import Rollups
    from balog.analytics.tables.parquet import ParquetStore


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


def open_store(spark: SparkSession, location: str) -> ParquetStore:
    """Open the store at a location, which need not exist yet.

    Raises:
        ConfigError: the location is not valid, see ``check_location``.
        TableError: the store can't be reached.
    """
    catalog = next((name for name in CATALOGS if location.startswith(name)), "")
    if catalog:
        store: ParquetStore = import_module(f"balog.analytics.tables.{catalog[:-1]}").open_store(spark, location)
        return store
    check_location(location)
    from balog.analytics.tables.parquet import ParquetStore

    return ParquetStore(spark, location)


class Tables:
    """Tables as frames; open them with ``open_tables``."""

    def __init__(self, store: ParquetStore) -> None:
        self._store = store

    @property
    def location(self) -> str:
        """The location that they were opened by."""
        return self._store.location

    def names(self) -> list[str]:
        """Return the names of all tables, rollups included, sorted."""
        return self._store.names()

    def frame(self, name: str, since: datetime | None = None, until: datetime | None = None) -> DataFrame:
        """Return a table's columns and ``date date``, the UTC day of each row.

        Args:
            name: the table.
            since, until: the frame may omit days and files outside of this time; it does not filter rows.

        Raises:
            TableError: there is no such table.
        """
        return self._store.frame(name, since, until)

    def rollups(self, since: datetime | None = None, until: datetime | None = None) -> Rollups:
        """Return the stored rollups of the hours that begin at or after ``since`` and before ``until``.

        Raises:
            TableError: these tables have no rollups.
        """
        from balog.analytics.rollups import Rollups
        from balog.analytics.rollups.frames import hours_between

        frames = {}
        for name, table in ROLLUPS.items():
            frame = self.frame(table, since, until)
            frames[name] = (hours_between(frame, since, until) if "hour" in frame.columns else frame).drop("date")
        return Rollups(**frames)


def open_tables(spark: SparkSession, location: str) -> Tables:
    """Open the tables at a location.

    Raises:
        TableError: there are none.
    """
    if not is_tables(location):
        raise TableError("there are no tables; load some: balog load SOURCE --tables PLACE", location)
    return Tables(open_store(spark, location))
