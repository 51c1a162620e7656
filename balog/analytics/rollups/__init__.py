"""Events counted: small rows that can be merged, by hour.

``from_files`` and ``from_events`` make rollup rows (``schemas.ROLLUP``), ``split`` gives them as the five frames that
are stored and asked (``Rollups``), and ``merge`` makes of any number of those rows one for each key.
"""

from balog.analytics.rollups.builder import from_events, from_files
from balog.analytics.rollups.frames import Rollups, merge, split

__all__ = ["Rollups", "from_events", "from_files", "merge", "split"]
