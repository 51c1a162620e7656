"""Reflection of DuckDB: its driver's own asks for tables of PostgreSQL that DuckDB lacks."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text, types
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.exc import NoSuchTableError

from balog.tap.sql.column_types import Declared, Nested

_TABLES = """SELECT table_name, table_type FROM information_schema.tables
WHERE table_catalog = current_database() AND table_schema = coalesce(:schema, current_schema())
AND coalesce(:table, table_name) = table_name"""
_COLUMNS = _TABLES.replace("table_name, table_type", "column_name, data_type, is_nullable").replace(
    ".tables", ".columns"
)
_KEYS = """SELECT unnest(constraint_column_names) FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'
AND database_name = current_database() AND schema_name = coalesce(:schema, current_schema()) AND table_name = :table"""


class Exact(types.Numeric[Any]):
    """A decimal, of which the driver's SQLAlchemy would make a float."""

    def bind_processor(self, dialect: Any) -> None:
        """Bind values as they are."""

    def result_processor(self, dialect: Any, coltype: Any) -> None:
        """Return values as they are."""


_TYPES: dict[str, Any] = {
    "BLOB": types.LargeBinary(),
    "BOOLEAN": types.Boolean(),
    "DATE": types.Date(),
    "DECIMAL": Exact(),
    "DOUBLE": types.Double(),
    "FLOAT": types.REAL(),
    "JSON": types.JSON(),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), types.DateTime()),
    "TIMESTAMP WITH TIME ZONE": types.DateTime(timezone=True),
    "UUID": types.Uuid(),
    "VARCHAR": types.String(),
}


class DuckInspector(Inspector):
    """What a ``Database`` asks of SQLAlchemy's inspector, for a connection to DuckDB."""

    def get_table_names(self, schema: str | None = None, **options: Any) -> list[str]:
        """Return the names of the tables."""
        return [name for name, kind in self._ask(_TABLES, schema) if kind != "VIEW"]

    def get_view_names(self, schema: str | None = None, **options: Any) -> list[str]:
        """Return the names of the views."""
        return [name for name, kind in self._ask(_TABLES, schema) if kind == "VIEW"]

    def get_columns(self, table_name: str, schema: str | None = None, **options: Any) -> list[Any]:
        """Return the columns of a table."""
        columns = self._ask(f"{_COLUMNS} ORDER BY ordinal_position", schema, table_name)
        if not columns:
            raise NoSuchTableError(table_name)
        return [{"name": name, "type": _type(kind), "nullable": null == "YES"} for name, kind, null in columns]

    def get_pk_constraint(self, table_name: str, schema: str | None = None, **options: Any) -> Any:
        """Return the columns of a table's primary key."""
        return {"constrained_columns": [name for (name,) in self._ask(_KEYS, schema, table_name)]}

    def _ask(self, statement: str, schema: str | None, table: str | None = None) -> list[Any]:
        return list(self.bind.execute(text(statement), {"schema": schema, "table": table}))  # type: ignore[union-attr]


def _type(name: str) -> Any:
    if name.endswith("]") or name.startswith(("MAP(", "STRUCT(")):
        return Nested()
    if name.endswith(("INT", "INTEGER")):
        return types.Integer()
    return _TYPES.get(name.partition("(")[0]) or Declared(name)
