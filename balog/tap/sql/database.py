"""A database as the client of a tap: its connections, and the streams of its tables and views.

DuckDB has reflection of its own here: its driver's asks for tables of PostgreSQL that DuckDB lacks.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timezone, tzinfo
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy import event, text, types
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, NoSuchTableError, SAWarning, SQLAlchemyError

from balog.common.errors import ConfigError
from balog.tap.errors import SourceError
from balog.tap.records.plain import exact_json
from balog.tap.sql.column_types import GEOMETRIES, ColumnType, Declared, Geometry, Nested, column_type
from balog.tap.sql.sqlite_types import sqlite_type

PAGE_ROWS = 5_000
"""The number of rows that one statement reads."""

_SESSION = {
    "postgresql": (
        "SET TIME ZONE 'UTC'",
        "SET datestyle = 'ISO'",
        "SET intervalstyle = 'iso_8601'",
        "SET default_transaction_read_only = on",
    ),
    "duckdb": ("SET TimeZone = 'UTC'",),
    "mysql": ("SET time_zone = '+00:00'", "SET SESSION TRANSACTION READ ONLY"),
}
"""Statements for a new connection, by dialect: times come in UTC, and nothing is written."""

_HIDDEN = {
    "postgresql": """
SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND (c.relispartition OR NOT pg_catalog.has_table_privilege(c.oid, 'SELECT'))""",
    "sqlite": "SELECT name FROM pragma_table_list WHERE type = 'shadow' AND schema = coalesce(:schema, 'main')",
}
"""Tables that are not streams: partitions, whose rows their table has, those one may not read, those of an index."""

_DRIVERS = {"postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
"""The driver of a URL without one. SQLAlchemy's choice depends on its version."""

_DECLARED = "SELECT name, type FROM pragma_table_xinfo(:table, coalesce(:schema, 'main'))"
"""Columns of a table of SQLite with the types that it declares; SQLAlchemy knows few of them."""


_CHECKS = """
SELECT check_clause FROM information_schema.check_constraints
WHERE constraint_schema = coalesce(:schema, database()) AND table_name = :table
"""
"""Checks of a table of MariaDB, whose JSON is a text with a check."""


class TableColumn(NamedTuple):
    """A column: SQLAlchemy's type, how it is read, and whether it may be null."""

    kind: Any
    read: ColumnType
    null: bool


class FoundTable(NamedTuple):
    """A table or view: its schema (None for the default one) and name."""

    schema: str | None
    name: str
    is_view: bool


class Database:
    """A database.

    ::

        @tap.client
        def client(config):
            return Database(config["url"])

        @tap.discover(reader=TableStream)
        def tables(client, context):
            return TableStream.find(client, context)

    Args:
        url: SQLAlchemy's URL, ``postgresql+psycopg2://user:password@host/name``.
        schemas: the schemas; none for the default one. Streams of others are named ``SCHEMA-TABLE``.
        names: patterns of the tables and views, as ``orders_*``.
        views: whether views are streams, too.
        page_rows: the number of rows that one statement reads; the state is written after each such page.
        naive_zone: the zone of times without one.
        slot: the name of PostgreSQL's logical replication slot, which makes LOG_BASED possible.
        connect: arguments of the driver's ``connect``.

    Attributes:
        engine: SQLAlchemy's engine.
        slot: see above.
        zone: see ``naive_zone``.
        has_advanced: the slot was advanced in this run.

    Raises:
        ConfigError: the URL is not one, its driver is not installed, or ``page_rows`` is not positive.
    """

    def __init__(
        self,
        url: str | sqlalchemy.URL,
        *,
        schemas: Sequence[str] | None = None,
        names: Sequence[str] = ("*",),
        views: bool = True,
        page_rows: int = PAGE_ROWS,
        naive_zone: tzinfo = timezone.utc,
        slot: str | None = None,
        connect: Mapping[str, Any] | None = None,
    ) -> None:
        if page_rows < 1:
            raise ConfigError("expected a number of rows, at least 1", path="page_rows")
        try:
            options: dict[str, Any] = {"connect_args": dict(connect or {}), "hide_parameters": True}
            parsed = sqlalchemy.make_url(url)
            parsed = parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))
            backend = parsed.get_backend_name()
            if backend == "duckdb" and parsed.database not in (None, "", ":memory:"):
                options["connect_args"].setdefault("read_only", True)
            if backend in ("postgresql", "mysql", "mariadb", "sqlite", "duckdb"):
                options["json_deserializer"] = exact_json
            self.engine = sqlalchemy.create_engine(parsed, **options)
        except (ArgumentError, NoSuchModuleError, ValueError):
            raise ConfigError("is not a URL of SQLAlchemy: expected DIALECT+DRIVER://USER:PASSWORD@HOST/NAME") from None
        except ImportError as error:
            raise ConfigError(f"the URL's driver is not installed: {error}") from None
        name = self.engine.dialect.name
        self.dialect: str = "mysql" if name == "mariadb" else name
        dialect: Any = self.engine.dialect
        if self.dialect == "duckdb":
            dialect.inspector = DuckInspector
        if self.dialect == "mysql":
            for word in GEOMETRIES:
                dialect.ischema_names.setdefault(word, Geometry)
        warnings.filterwarnings(
            "ignore", "Did not recognize type|Could not instantiate type", SAWarning
        )  # those are selected as text
        self.page_rows, self.slot, self.has_advanced = page_rows, slot, False
        self._schemas, self._names, self._has_views, self.zone = tuple(schemas or ()), tuple(names), views, naive_zone
        event.listen(self.engine, "connect", self._prepare)

    @contextmanager
    def connection(self, **options: Any) -> Iterator[sqlalchemy.Connection]:
        """Yield a connection, with errors as ``SourceError``; ``options`` are SQLAlchemy's execution options."""
        with source_errors(), self.engine.connect() as connection:
            yield connection.execution_options(**options)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self.engine.dispose()

    def tables(self) -> Iterator[FoundTable]:
        """Yield the tables and views, sorted by name."""
        with self.connection() as connection:
            inspector = sqlalchemy.inspect(connection)
            for schema in self._schemas or (None,):
                hidden = self._hidden(connection, schema or inspector.default_schema_name)
                tables = [(name, False) for name in inspector.get_table_names(schema)]
                if self._has_views:
                    tables += [(name, True) for name in inspector.get_view_names(schema)]
                    if self.dialect == "postgresql":
                        tables += [(name, True) for name in inspector.get_materialized_view_names(schema)]
                for name, is_view in sorted(set(tables)):
                    if name not in hidden and any(fnmatchcase(name, pattern) for pattern in self._names):
                        yield FoundTable(schema, name, is_view)

    def columns(self, connection: sqlalchemy.Connection, schema: str | None, table: str) -> dict[str, TableColumn]:
        """Return a table's columns, by name.

        Raises:
            SourceError: there is no such table.
        """
        try:
            columns = sqlalchemy.inspect(connection).get_columns(table, schema)
        except sqlalchemy.exc.NoSuchTableError:
            raise SourceError(
                f"there is no table {table!r}" + (f" in the schema {schema!r}" if schema else "")
            ) from None
        if not columns:
            raise SourceError(f"the table {table!r} has no columns")
        if getattr(connection.dialect, "is_mariadb", False):
            checks = connection.execute(sqlalchemy.text(_CHECKS), {"schema": schema, "table": table}).scalars().all()
            for column in columns:
                if f"json_valid(`{column['name']}`)" in checks:
                    column["type"] = sqlalchemy.JSON()
        if self.dialect == "sqlite":
            declared = connection.execute(sqlalchemy.text(_DECLARED), {"schema": schema, "table": table})
            kinds = {row["name"]: Declared(row["type"]) for row in declared.mappings()}
            columns = [{**column, "type": kinds[column["name"]]} for column in columns]
        return {
            column["name"]: TableColumn(
                column["type"], self.type_of(column["type"]), bool(column.get("nullable", True))
            )
            for column in columns
        }

    def keys(self, connection: sqlalchemy.Connection, schema: str | None, table: str) -> list[str]:
        """Return the columns of a table's primary key, in its order."""
        return list(sqlalchemy.inspect(connection).get_pk_constraint(table, schema).get("constrained_columns") or ())

    def type_of(self, kind: Any, *, null: bool = True) -> ColumnType:
        """Return how a column of a type is read."""
        if self.dialect == "sqlite":
            return sqlite_type(kind.name, self.zone, null=null)
        return column_type(kind, self.dialect, self.zone, null=null)

    def _hidden(self, connection: sqlalchemy.Connection, schema: str | None) -> set[str]:
        version = connection.dialect.server_version_info
        if self.dialect not in _HIDDEN or (self.dialect == "sqlite" and version is not None and version < (3, 37)):
            return set()
        return set(connection.execute(sqlalchemy.text(_HIDDEN[self.dialect]), {"schema": schema}).scalars())

    def _prepare(self, connection: Any, record: Any) -> None:
        if self.dialect == "sqlite":  # a text that is not UTF-8 is an error of its row, not of the table
            connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        statements = _SESSION.get(self.dialect, ())
        if statements:
            was = getattr(connection, "autocommit", None)
            if self.dialect == "postgresql":  # otherwise the rollback of the transaction undoes them
                connection.autocommit = True
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            cursor.close()
            if self.dialect == "postgresql":
                connection.autocommit = was


@contextmanager
def source_errors() -> Iterator[None]:
    """Raise errors of the database as ``SourceError``, one line without the statement and its values."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        lines = [line for line in str(cause).splitlines() if line.strip()] or [""]
        reason = f"{type(cause).__name__}: {lines[0].strip()}"
        is_lost = bool(getattr(error, "connection_invalidated", False))
        raise SourceError(f"the database: {reason}", retryable=is_lost) from error


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
