"""Moments as literals of Spark."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["literal"]


def literal(moment: datetime) -> Column:
    """Return a moment with a time zone as a timestamp of Spark.

    It goes as text: Py4J takes a moment before 1582 for one of the Julian calendar, up to ten days away.
    """
    return f.lit(moment.isoformat()).cast("timestamp")
