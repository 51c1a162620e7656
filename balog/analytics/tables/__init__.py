"""Events as plain tables: ``events``, one for each payload type, ``quarantine``, and the rollups.

``open_tables`` reads them; ``balog load`` writes them. A place is a folder of Parquet files, or a catalog that is named
``hive:…``, ``iceberg:…`` or ``delta:…``.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from balog.analytics.tables.store import Store, TableError
from balog.errors import ConfigError
from balog.local_path import check_variables

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from balog.analytics.rollups import Rollups

__all__ = ["ROLLUPS", "TableError", "Tables", "check_place", "is_tables", "open_store", "open_tables"]

CATALOGS = ("hive:", "iceberg:", "delta:")
"""What a place in a catalog begins with; ``balog.analytics.tables.<catalog>.open_store(spark, place)`` opens it."""

ROLLUPS = {
    "events": "rollup_events",
    "metrics": "rollup_metrics",
    "errors": "rollup_errors",
    "runs": "rollup_runs",
    "quarantine": "rollup_quarantine",
}
"""The table of each of the frames of ``rollups.Rollups``."""


class Tables:
    """Tables to ask; ``open_tables`` gives one."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def place(self) -> str:
        """Where they are."""
        return self._store.place

    def names(self) -> list[str]:
        """Give the names of all tables, sorted, those of rollups too."""
        return self._store.names()

    def frame(self, name: str, since: datetime | None = None, until: datetime | None = None) -> DataFrame:
        """Give a table's columns, and ``date date``, the UTC day of its rows.

        Args:
            since, until: days and files outside of that time may be left out; rows are not filtered.

        Raises:
            TableError: there is no such table.
        """
        return self._store.frame(name, since, until)

    def rollups(self, since: datetime | None = None, until: datetime | None = None) -> Rollups:
        """Give the stored rollups of the hours that begin from ``since`` on and before ``until``.

        Raises:
            TableError: these tables have none.
        """
        from pyspark.sql import functions as f

        from balog.analytics.reading.moments import literal
        from balog.analytics.rollups import Rollups

        frames = {}
        for name, table in ROLLUPS.items():
            frame = self.frame(table, since, until)
            if "hour" in frame.columns:
                frame = frame.where(f.col("hour") >= literal(since)) if since is not None else frame
                frame = frame.where(f.col("hour") < literal(until)) if until is not None else frame
            frames[name] = frame.drop("date")
        return Rollups(**frames)


def check_place(place: str) -> None:
    """Refuse the name of a place where no tables can be, before anything is written there.

    Raises:
        ConfigError: nothing, a URL of a store, another catalog, or a file.
    """
    if not place.strip():
        raise ConfigError("the tables' place is empty; give a folder, or . for this one", "--tables")
    if re.match(r"[A-Za-z][\w+.-]+:", place) and not place.startswith((*CATALOGS, "file:")):
        want = "hive:…, iceberg:… or delta:… (their files may be on a store)"
        raise ConfigError(f"is no folder; give one (./NAME where it has a colon), or {want}", place.partition("?")[0])
    check_variables(place, place.partition("?")[0])
    if os.path.isfile(place):
        raise ConfigError("is a file; give a folder for the tables", place)


def is_tables(place: str) -> bool:
    """Tell whether ``place`` names tables: a catalog's place, or a folder that ``balog load`` wrote."""
    from balog.analytics.tables.log import is_log

    return place.startswith(CATALOGS) or is_log(place)


def open_store(spark: SparkSession, place: str) -> Store:
    """Give the store behind a place, which need not be there yet.

    Raises:
        ConfigError: the place's name can't be understood, see ``check_place``.
        TableError: it can't be reached.
    """
    catalog = next((name for name in CATALOGS if place.startswith(name)), "")
    if catalog:
        from importlib import import_module

        store: Store = import_module(f"balog.analytics.tables.{catalog[:-1]}").open_store(spark, place)
        return store
    check_place(place)
    from balog.analytics.tables.parquet import ParquetStore

    return ParquetStore(spark, place)


def open_tables(spark: SparkSession, place: str) -> Tables:
    """Give tables that are there, to be asked.

    Raises:
        TableError: there are none.
    """
    if not is_tables(place):
        raise TableError("there are no tables; load some: balog load SOURCE --tables PLACE", place)
    return Tables(open_store(spark, place))
