"""Taps of databases: tables that are found by reflection, and read by full table, replication key or log.

SQLAlchemy is imported here, which is the extra ``sql``; the driver of the database is the tap's own dependency.
"""

from balog.common.errors import MissingExtraError

try:
    import sqlalchemy  # noqa: F401
except ImportError:
    raise MissingExtraError("balog.tap.sql", "sql") from None

from balog.tap.sql.database import Database
from balog.tap.sql.table_stream import TableStream

__all__ = ["Database", "TableStream"]
