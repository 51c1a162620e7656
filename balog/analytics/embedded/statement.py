"""Runs one statement in DuckDB's SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, TYPE_CHECKING

from balog.analytics.closed_duckdb import quoted
from balog.analytics.embedded.database import SECONDS, open_database
from balog.analytics.embedded.raw_tables import QueryTables
from balog.analytics.querying.sources import check_length
from balog.analytics.tables.local import StoredTables
from balog.common.errors import BalogError, ConfigError

if TYPE_CHECKING:
    import duckdb

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
