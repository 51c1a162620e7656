"""Runs one checked statement on the embedded engine."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from balog.analytics.closed_duckdb import quoted
from balog.analytics.embedded.database import SECONDS, open_database
from balog.analytics.embedded.documents import encoder_of
from balog.analytics.embedded.queries import translate
from balog.analytics.embedded.stored_tables import ReadableTables
from balog.analytics.embedded.values import Kind, SparkNeeded, duckdb_type, simple_type

_ROWS = 1_000
_SHOW_TABLES = re.compile(r"\s*SHOW\s+(TABLE|VIEW)S(?:\s+(?:LIKE\s+)?'([^'\\]*)')?\s*", re.IGNORECASE)
_SHOW_COLUMNS = re.compile(r"\s*SHOW\s+COLUMNS\s+(?:IN|FROM)\s+(`.+`|\w+)\s*", re.IGNORECASE)
_DESCRIBE = re.compile(r"\s*DESC(?:RIBE)?\s+(?:TABLE\s+)?(`.+`|\w+)\s*", re.IGNORECASE)
_DESCRIBE_QUERY = re.compile(r"\s*DESC(?:RIBE)?\s+(?:QUERY\s+)?(?=SELECT\b|WITH\b)", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class Question:
    """A statement that the embedded engine answers.

    Attributes:
        tables: the tables.
        names: the columns of the answer, in order.
        kinds: their Spark types.
        reads: the tables that it reads.
        sql: the statement in DuckDB's dialect; "" if ``answer`` is known already.
        answer: the rows of SHOW and DESCRIBE.
    """

    tables: ReadableTables
    names: list[str]
    kinds: list[Kind]
    reads: list[str]
    sql: str = ""
    answer: tuple[tuple[Any, ...], ...] = ()

    @property
    def size(self) -> int:
        """The bytes of the tables that it reads."""
        return self.tables.size(self.reads)

    @contextmanager
    def rows(self, limit: int | None = None, seconds: float = SECONDS) -> Iterator[Iterator[str]]:
        """Run the query: an iterator over the JSON text of each row, at most one more than ``limit``.

        Raises:
            SparkNeeded: a value is of a kind that only Spark answers.
            BalogError: the query failed, or reached a limit of memory or time.
        """
        encode = encoder_of(self.kinds)
        if not self.sql:
            yield map(encode, self.answer)
            return
        sql = self._typed([f"c{number}" for number in range(len(self.names))], limit and limit + 1)
        with open_database(self.tables, self.reads, seconds) as connection:
            connection.execute(sql)
            first = connection.fetchmany(_ROWS)
            more = iter(lambda: connection.fetchmany(_ROWS), [])
            yield map(encode, chain(first, chain.from_iterable(more)))

    def write_parquet(self, file: IO[bytes], limit: int | None = None, seconds: float = SECONDS) -> int:
        """Write the rows as a Parquet file, and return their number.

        Raises:
            SparkNeeded, BalogError: see ``rows``.
        """
        import pyarrow.parquet as pq

        if not self.sql:
            raise SparkNeeded("SHOW and DESCRIBE are not written as Parquet here")
        written = 0
        with open_database(self.tables, self.reads, seconds) as connection:
            reader = connection.sql(self._typed(self.names, limit, zoned=True)).to_arrow_reader(100_000)
            with pq.ParquetWriter(file, reader.schema, compression="snappy") as writer:
                for batch in reader:
                    writer.write_batch(batch)
                    written += batch.num_rows
        return written

    def _typed(self, names: list[str], limit: int | None, zoned: bool = False) -> str:
        columns = [f"c{number}" for number in range(len(names))]
        shown = []
        for column, name, kind in zip(columns, names, self.kinds):
            wanted = "TIMESTAMPTZ" if zoned and kind == "timestamp" else duckdb_type(kind)
            shown.append(f"CAST({column} AS {wanted}) AS {quoted(name)}")
        end = "" if limit is None else f" LIMIT {limit}"
        return f"SELECT {', '.join(shown)} FROM ({self.sql}) AS answer({', '.join(columns)}){end}"


def ask(tables: ReadableTables, sql: str) -> Question:
    """Translate a statement that the policy has passed.

    Args:
        tables: the tables.
        sql: the query that ``querying.policy.check`` returned.

    Raises:
        SparkNeeded: only Spark answers it, or DuckDB might answer differently.
        ConfigError: a table or column is unknown.
    """
    if _EXPLAIN.match(sql):
        raise SparkNeeded("EXPLAIN shows Spark's plan")
    described = _DESCRIBE_QUERY.match(sql)
    if described is None and (looked := _look(tables, sql)) is not None:
        return looked
    body = sql if described is None else sql[described.end() :]
    words = {word.lower() for word in _WORDS.findall(body)}
    # Raw events are not words, and are there only if the statement names them.
    reads = [name for name in tables.names() if name.lower() in words or not _WORDS.fullmatch(name)]
    made = translate(body, {name: tables.columns(name) for name in reads} or {})
    if described is not None:
        return _described(tables, dict(zip(made.names, made.kinds)))
    return Question(tables, made.names, made.kinds, reads, made.sql)


def _look(tables: ReadableTables, sql: str) -> Question | None:
    names = {name.lower(): name for name in tables.names()}
    if found := _SHOW_TABLES.fullmatch(sql):
        rows = tuple(("", name, True) for name in tables.names() if _is_like(name, found[2]))
        return Question(
            tables,
            ["namespace", f"{found[1].lower()}Name", "isTemporary"],
            ["string", "string", "boolean"],
            [],
            "",
            rows,
        )
    if found := _SHOW_COLUMNS.fullmatch(sql):
        columns = tables.columns(names[_unquoted(found[1]).lower()])
        return Question(tables, ["col_name"], ["string"], [], "", tuple((name,) for name in columns))
    if found := _DESCRIBE.fullmatch(sql):
        return _described(tables, tables.columns(names[_unquoted(found[1]).lower()]))
    if re.match(r"\s*(SHOW|DESC)", sql, re.IGNORECASE):
        raise SparkNeeded("this statement")
    return None


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _is_like(name: str, pattern: str | None) -> bool:
    """Return whether a name matches a pattern of SHOW: ``*`` is any text, ``|`` separates choices."""
    if pattern is None:
        return True
    return any(fnmatch.fnmatchcase(name.lower(), one.strip().lower()) for one in pattern.split("|"))


def _described(tables: ReadableTables, columns: dict[str, Kind]) -> Question:
    rows = tuple((name, simple_type(kind), None) for name, kind in columns.items())
    return Question(tables, ["col_name", "data_type", "comment"], ["string"] * 3, [], "", rows)
