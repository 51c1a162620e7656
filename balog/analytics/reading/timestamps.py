"""Timestamps as literals of Spark."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as f


def literal(moment: datetime) -> Column:
    """Return a literal for a time with a zone.

    It is passed as text: Py4J would convert a time before 1582 with the Julian calendar, which is up to ten days off.
    """
    return f.lit(moment.isoformat()).cast("timestamp")
