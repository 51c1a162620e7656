"""Runs one statement in DuckDB's SQL, in a closed DuckDB with views of some tables."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, TYPE_CHECKING

from balog.analytics.closed_duckdb import SPILL, open_closed, quoted, text
from balog.analytics.embedded.raw_tables import QueryTables
from balog.analytics.querying.sources import RAW, check_length
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
        timer.daemon = True
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


_ROWS = 1_000
_NO_JSON = r"(^|[:,\[])(NaN|-?Infinity)"
_WORDS = re.compile(r"\w+")


class QueryAnswer:
    """The answer to a statement; it is computed when its rows are read.

    Attributes:
        names: the columns, in order; each is unique.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str) -> None:
        self._connection = connection
        described = connection.execute(f"DESCRIBE FROM ({sql}\n)").fetchall()
        self.names: list[str] = [row[0] for row in described]
        self._types: list[str] = [row[1] for row in described]
        self._columns = [f"c{number}" for number in range(len(self.names))]
        self._rows = f"({sql}\n) AS answer({', '.join(self._columns)})"

    def rows(self, limit: int | None = None) -> Iterator[str]:
        """Yield the JSON text of each row, an object with the fields ``c0``, ``c1`` …; one more than ``limit``."""
        fields = ", ".join(f"'{name}': {_json(name, kind)}" for name, kind in zip(self._columns, self._types))
        self._connection.execute(f"SELECT to_json({{{fields}}}) FROM {self._rows}{_limited(limit)}")
        batches = iter(lambda: self._connection.fetchmany(_ROWS), [])
        return (row[0] for row in chain.from_iterable(batches))

    def write_parquet(self, file: IO[bytes], limit: int | None = None) -> tuple[int, bool]:
        """Write the rows as a Parquet file; return their number, and whether there are more."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        shown = ", ".join(f"{column} AS {quoted(name)}" for column, name in zip(self._columns, self.names))
        read = 0
        reader = self._connection.sql(f"SELECT {shown} FROM {self._rows}{_limited(limit)}").to_arrow_reader(100_000)
        try:
            with pq.ParquetWriter(file, reader.schema, compression="snappy") as writer:
                for batch in reader:
                    writer.write_batch(batch if limit is None else batch.slice(0, max(0, limit - read)))
                    read += batch.num_rows
        except pa.ArrowException as error:
            raise ConfigError(f"Parquet lacks the type of a column, CAST it to VARCHAR: {error}", "SQL") from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise BalogError(f"SQL: {' '.join(str(error).split()):.500}") from None  # DuckDB's, as Arrow passes it on
        more = limit is not None and read > limit
        return read - more, more


@contextmanager
def ask(tables: StoredTables | QueryTables, sql: str, seconds: float = SECONDS) -> Iterator[QueryAnswer]:
    """Open a closed database of the tables and run a statement.

    Args:
        tables: the tables.
        sql: one statement that returns rows: SELECT, WITH, FROM, VALUES, SHOW, DESCRIBE or SUMMARIZE.
        seconds: the time limit.

    Raises:
        ConfigError: it is another statement, or wrong.
        BalogError: it failed, or reached a limit.
    """
    check_length(sql)
    sql = sql.rstrip("; \t\r\n")
    words = {word.lower() for word in _WORDS.findall(sql)}
    # Raw events are not words, and are there only if the statement names them. Without a table, it shows all.
    named = [name for name in tables.names() if name.lower() in words or not _WORDS.fullmatch(name)]
    with open_database(tables, named or tables.names(), seconds) as connection:
        import duckdb

        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ConfigError("expected one query: SELECT, WITH, FROM, VALUES, SHOW, DESCRIBE or SUMMARIZE", "SQL")
        yield QueryAnswer(connection, sql)


def _limited(rows: int | None) -> str:
    return "" if rows is None else f" LIMIT {rows + 1}"


def _json(column: str, kind: str) -> str:
    """Return the SQL of a column's JSON: times in UTC, bytes in base64, numbers that JSON lacks as text."""
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"strftime({column} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')"
    if kind == "BLOB":
        return f"base64({column})"
    if "DOUBLE" in kind or "FLOAT" in kind:
        value = f"to_json({column})"
        return f"CASE WHEN regexp_matches({value}, '{_NO_JSON}') THEN to_json({column}::VARCHAR) ELSE {value} END"
    return column
