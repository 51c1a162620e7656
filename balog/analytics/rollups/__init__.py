"""Rollups: events aggregated by hour, as small rows that can be merged.

``from_files`` and ``from_events`` build rollup rows (``schemas.ROLLUP``), ``split`` separates them into the five frames
that are stored and queried (``Rollups``), and ``merge`` merges any number of rows to one for each key. Those four
functions need Spark, which they import on first access.
"""

from typing import TYPE_CHECKING

from balog.analytics.rollups.schemas import Rollups
from balog.common.lazy_exports import deferred

if TYPE_CHECKING:
    from balog.analytics.rollups.frames import from_events, from_files, merge, split

__all__ = ["Rollups", "from_events", "from_files", "merge", "split"]

_OF_SPARK = ("from_events", "from_files", "merge", "split")
__getattr__ = deferred(globals(), dict.fromkeys(_OF_SPARK, "balog.analytics.rollups.frames"))
