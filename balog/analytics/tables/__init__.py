"""Events as plain tables: ``events``, one table for each payload type, ``quarantine``, and the rollups.

``balog load`` writes them, ``open_tables`` reads them. A location is a folder of Parquet files, or a catalog named
``hive:…`` or ``delta:…``.
"""

from balog.analytics.tables.catalogs.location import check_location, is_tables, open_store, open_tables
from balog.analytics.tables.store import ROLLUPS, TableError

__all__ = ["ROLLUPS", "TableError", "check_location", "is_tables", "open_store", "open_tables"]
