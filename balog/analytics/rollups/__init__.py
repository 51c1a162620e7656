"""Rollups: events aggregated by hour, as small rows that can be merged.

``from_files`` and ``from_events`` build rollup rows (``schemas.ROLLUP``), ``split`` separates them into the five frames
that are stored and queried (``Rollups``), and ``merge`` merges any number of rows to one for each key.
"""

from balog.analytics.rollups.builder import from_events, from_files
from balog.analytics.rollups.frames import Rollups, merge, split

__all__ = ["Rollups", "from_events", "from_files", "merge", "split"]
