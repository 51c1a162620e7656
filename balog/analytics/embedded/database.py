"""A closed DuckDB with views of some tables."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from balog.analytics.closed_duckdb import SPILL, open_closed, quoted, text
from balog.analytics.embedded.raw_tables import QueryTables
from balog.analytics.querying.sources import RAW
from balog.analytics.tables.local import StoredTables
from balog.common.errors import BalogError, ConfigError

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GB"
"""The most memory that a query takes; what is beyond goes to a temporary folder."""

SECONDS = 600.0
"""The longest time of a query."""

_WRONG = ("BinderException", "CatalogException", "InvalidInputException", "NotImplementedException", "ParserException")
"""Errors of a statement, not of a row."""

_NO_TABLE = re.compile(
    r'(Table with name (\w+) does not exist!)( Did you mean "(pg|duckdb|sqlite|pragma|info)[^"]*"\?)?$'
)


@contextmanager
def open_database(
    tables: StoredTables | QueryTables, names: list[str], seconds: float = SECONDS
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a closed database with a view for each of some tables.

    Args:
        tables: the tables.
        names: those that the query reads.
        seconds: the time limit.

    Raises:
        MissingExtraError: DuckDB is not installed.
        BalogError: the query failed, or reached a limit.
    """
    files = [file for name in names for file in tables.files(name)]
    with tempfile.TemporaryDirectory(prefix="balog-query-") as folder:
        connection = open_closed(files, folder=folder, memory=MEMORY)
        timer = threading.Timer(seconds, connection.interrupt)
        try:
            with _explained(seconds):
                connection.execute(f"CREATE SCHEMA {quoted(RAW[:-1])}")
                for name in names:
                    _create_view(connection, tables, name)
                timer.start()
                yield connection
        finally:
            timer.cancel()
            connection.close()


def _create_view(connection: duckdb.DuckDBPyConnection, tables: StoredTables | QueryTables, name: str) -> None:
    """Create the view of a table: files of one stored schema are read together, and cast to the table's columns.

    DuckDB 2.0 can't read all files at once, with ``union_by_name``: null structs that gained a struct end in an
    internal error.
    """
    columns, files = tables.columns(name), tables.files(name)
    is_raw = name.startswith(RAW)
    view = f"{quoted(RAW[:-1])}.{quoted(name[len(RAW) :])}" if is_raw else quoted(name)
    absent = "error('raw events are read by the names of their columns; name them')" if is_raw else "NULL"
    parts = ["(SELECT 1) WHERE false"]
    if files:
        parts = [
            f"read_parquet([{_listed(group)}], hive_partitioning = true, hive_types_autocast = false)"
            for group in _by_schema(connection, files)
        ]
    selects = []
    for rows in parts:
        have = {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()}
        shown = ", ".join(
            f"CAST({quoted(column) if column in have else absent} AS {kind}) AS {quoted(column)}"
            for column, kind in columns.items()
        )
        selects.append(f"SELECT {shown} FROM {rows}")
    connection.execute(f"CREATE VIEW {view} AS {' UNION ALL '.join(selects)}")


def _by_schema(connection: duckdb.DuckDBPyConnection, files: list[str]) -> list[list[str]]:
    """Return files in groups of the same columns, each in the given order."""
    rows = connection.execute(
        "SELECT file_name, list((name, type, num_children, converted_type, logical_type)) "
        f"FROM parquet_schema([{_listed(files)}]) GROUP BY file_name"
    ).fetchall()
    schemas = {file: str(schema) for file, schema in rows}
    groups: dict[str, list[str]] = {}
    for file in files:
        groups.setdefault(schemas[file], []).append(file)
    return list(groups.values())


def _listed(files: list[str]) -> str:
    return ", ".join(map(text, files))


@contextmanager
def _explained(seconds: float) -> Iterator[None]:
    """Turn errors of DuckDB in the block into one line."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise BalogError(f"SQL: the query took longer than {seconds:,.0f} s; run it with --engine spark") from None
    except duckdb.OutOfMemoryException:
        raise BalogError(
            f"SQL: the query needs more memory than {MEMORY} and more disk than {SPILL}; run it with --engine spark"
        ) from None
    except (duckdb.InternalException, duckdb.FatalException):
        raise BalogError("SQL: DuckDB failed with an internal error; run it with --engine spark") from None
    except duckdb.Error as error:
        raise _explanation(error) from None


def _explanation(error: duckdb.Error) -> BalogError:
    """Return an error of DuckDB as one line, with the line of the statement."""
    reason, _, excerpt = str(error).partition("\n\nLINE ")
    line = f", line {excerpt.partition(':')[0]}" if excerpt else ""
    reason = _NO_TABLE.sub(r'\1 Raw events of --source \2 are balog."\2"', " ".join(reason.split()))
    message = f"{reason:.500}{line}"
    if type(error).__name__ in _WRONG:
        return ConfigError(message, "SQL (DuckDB's)")
    return BalogError(f"SQL: {message}")
