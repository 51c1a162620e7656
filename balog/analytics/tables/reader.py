"""Reads tables that ``balog load`` wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.analytics.tables.location import is_tables, open_store
from balog.analytics.tables.store import ROLLUPS, TableError, TableStore

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from balog.analytics.rollups import Rollups


class Tables:
    """Tables as frames; open them with ``open_tables``."""

    def __init__(self, store: TableStore) -> None:
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
        from balog.analytics.rollups.aggregates import hours_between

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
