"""A closed DuckDB with views of some tables."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from balog.analytics.closed_duckdb import SPILL, open_closed, quoted, text
from balog.analytics.embedded.stored_tables import ReadableTables
from balog.analytics.embedded.values import FAILURE, REFUSAL, SparkNeeded, duckdb_type
from balog.errors import BalogError, ConfigError

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GB"
"""The most memory that a query takes; what is beyond goes to a temporary folder."""

SECONDS = 600.0
"""The longest time of a query."""

_UNGROUPED = re.compile(r'column "(.+?)" must appear in the GROUP BY clause')


@contextmanager
def open_database(
    tables: ReadableTables, names: list[str], seconds: float = SECONDS
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
        timer.daemon = True
        try:
            with _explained(seconds):
                for name in names:
                    _create_view(connection, tables, name)
                timer.start()
                yield connection
        finally:
            timer.cancel()
            connection.close()


def _create_view(connection: duckdb.DuckDBPyConnection, tables: ReadableTables, name: str) -> None:
    """Create the view of a table: files of one stored schema are read together, and cast to the table's columns.

    DuckDB 2.0 can't read all files at once, with ``union_by_name``: null structs that gained a struct end in an
    internal error.
    """
    columns, files = tables.columns(name), tables.files(name)
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
            f"CAST({quoted(column) if column in have else 'NULL'} AS {duckdb_type(kind)}) AS {quoted(column)}"
            for column, kind in columns.items()
        )
        selects.append(f"SELECT {shown} FROM {rows}")
    connection.execute(f"CREATE VIEW {quoted(name)} AS {' UNION ALL '.join(selects)}")


def _by_schema(connection: duckdb.DuckDBPyConnection, files: list[str]) -> list[list[str]]:
    """Return files in groups of the same columns, each in the given order."""
    found = connection.execute(
        "SELECT file_name, list((name, type, num_children, converted_type, logical_type)) "
        f"FROM parquet_schema([{_listed(files)}]) GROUP BY file_name"
    ).fetchall()
    schemas = {file: str(schema) for file, schema in found}
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
        raise SparkNeeded("the embedded engine failed with an internal error") from None
    except duckdb.Error as error:
        raise _explanation(error) from None


def _explanation(error: Any) -> BalogError:
    line = str(error).split("\n")[0]
    for mark in (REFUSAL, FAILURE):
        if mark in line:
            reason = line.partition(mark)[2].strip()
            return SparkNeeded(reason) if mark == REFUSAL else BalogError(f"SQL: {reason}")
    reason = line.partition(": ")[2] or line
    if ungrouped := _UNGROUPED.match(reason):
        return ConfigError(f"the column {ungrouped[1]!r} is neither in GROUP BY nor in an aggregate function", "SQL")
    if type(error).__name__ in ("BinderException", "ParserException", "CatalogException", "NotImplementedException"):
        return SparkNeeded(f"the embedded engine can't run it ({reason:.150})")
    return BalogError(f"SQL: {reason:.300}; if Spark has to look at it: --engine spark")
