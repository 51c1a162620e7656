"""DuckDB as an engine for questions: in this process, without Java.

sqlglot translates the questions. It translates SQL that keeps to the rules of ``balog.analytics.questions``,
not any statement.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from balog.analytics.closed_duckdb import open_closed
from balog.analytics.engine import Frames, Parameters, Row, rows_of
from balog.analytics.sketches import merge_sketches, quantile_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MEMORY = "1GB"
"""The most memory of a database of questions."""

_MERGE, _QUANTILE = "kll_merge_agg_double", "kll_sketch_get_quantile_double"
_TYPES = {"varchar": "string", "blob": "binary", "timestamp with time zone": "timestamp", "integer": "int"}


class DuckDBEngine:
    """Answers questions in a closed DuckDB, see ``open_closed``. Calls from several threads wait for each other.

    Args:
        files: the Parquet files that it may read.
        memory: the most memory; what is beyond goes to a temporary folder.

    Raises:
        MissingExtraError: DuckDB is not installed.
    """

    def __init__(self, files: Sequence[str] = (), memory: str = MEMORY) -> None:
        folder = tempfile.TemporaryDirectory(prefix="balog-query-")
        self.connection = open_closed(files, folder=folder.name, memory=memory)
        self._close = weakref.finalize(self, _close, self.connection, folder)
        self._lock = threading.Lock()
        self._tables = 0
        self.connection.create_function(_MERGE, merge_sketches, ["BLOB[]"], "BLOB")
        self.connection.create_function(_QUANTILE, quantile_of, ["BLOB", "DOUBLE"], "DOUBLE")

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release memory and the temporary folder; frames of this engine can't be read any more."""
        self._close()

    def table(self, rows: pa.Table) -> DuckDBResult:
        """Return an Arrow table as a frame of this engine."""
        with self._lock:
            name = self._new_name()
            self.connection.register(name, rows)
        return DuckDBResult(self, name)

    def parquet(self, paths: Sequence[str], columns: str) -> DuckDBResult:
        """Return Parquet files as a frame of this engine.

        Args:
            paths: the files; there may be none.
            columns: names and DuckDB's types, ``hour TIMESTAMPTZ, channel VARCHAR``; those that files lack are null.
        """
        with self._lock:
            name = self._new_name()
            self.connection.execute(f"CREATE TABLE {name} ({columns})")
            if paths:
                kept = ", ".join(f'"{column}"' for column, _ in self.schema(name))
                files = self.connection.read_parquet(list(paths), union_by_name=True, hive_partitioning=False)
                files.select(kept).insert_into(name)
        return DuckDBResult(self, name)

    def sql(self, text: str, parameters: Parameters | None = None, **frames: DuckDBResult) -> DuckDBResult:
        """Compute and return the answer to a question; sums of whole numbers are ``bigint``, as in Spark."""
        statement, used = _translate(text, tuple((name, frame.name) for name, frame in frames.items()))
        values = {name: value for name, value in (parameters or {}).items() if name in used}
        with self._lock:
            name = self._new_name()
            self.connection.execute(f"CREATE TABLE {name} AS {statement}", values)
            for column, kind in self.schema(name):
                if kind == "HUGEINT":
                    self.connection.execute(f'ALTER TABLE {name} ALTER "{column}" TYPE BIGINT')
        return DuckDBResult(self, name)

    @contextmanager
    def tuned(self, rollups: Frames, rows: int) -> Iterator[Frames]:
        """Return the frames unchanged."""
        yield rollups

    def schema(self, table: str) -> list[tuple[str, str]]:
        """Return the names and the types of a table's columns, as DuckDB names them."""
        return [(name, str(kind)) for name, kind, *_ in self.connection.execute(f"DESCRIBE {table}").fetchall()]

    def fetch(self, table: str) -> list[Row]:
        """Return the rows of a table."""
        with self._lock:
            answer = self.connection.sql(f"FROM {table}").to_arrow_table()
        return rows_of(answer)

    def _new_name(self) -> str:
        self._tables += 1
        return f"frame_{self._tables}"


class DuckDBResult:
    """A table of a DuckDB engine: an answer, and a frame for further questions."""

    def __init__(self, engine: DuckDBEngine, name: str) -> None:
        self.engine = engine
        self.name = name

    @property
    def frame(self) -> DuckDBResult:
        """The answer itself."""
        return self

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self.engine.schema(self.name)]

    @property
    def types(self) -> list[str]:
        """The types of the columns, as Spark names them."""
        column_types = self.engine.connection.table(self.name).types
        return [_spark_type(kind) for kind in column_types]

    def rows(self) -> list[Row]:
        """Return the rows."""
        return self.engine.fetch(self.name)


def _close(connection: duckdb.DuckDBPyConnection, folder: tempfile.TemporaryDirectory[str]) -> None:
    connection.close()
    folder.cleanup()


def _spark_type(kind: Any) -> str:
    if kind.id == "list":
        return f"array<{_spark_type(kind.children[0][1])}>"
    if kind.id == "struct":
        return f"struct<{','.join(f'{name}:{_spark_type(inner)}' for name, inner in kind.children)}>"
    name = str(kind).lower()
    return _TYPES.get(name, name)


@lru_cache(maxsize=256)
def _translate(text: str, tables: Iterable[tuple[str, str]]) -> tuple[str, frozenset[str]]:
    """Return a question in DuckDB's SQL, and the names of its parameters."""
    parsed = sqlglot.parse_one(text.format(**dict(tables)), read="spark")
    used = frozenset(str(node.this) for node in parsed.find_all(exp.Placeholder))
    parsed = parsed.transform(_rewrite)
    for lists in list(parsed.find_all(exp.ArrayAgg, exp.ArrayUniqueAgg)):  # Spark's list of no values is not null
        lists.replace(exp.Coalesce(this=lists.copy(), expressions=[exp.Array()]))
    for sets in parsed.find_all(exp.Group):  # DuckDB's names no keys beside the sets
        if sets.args.get("grouping_sets"):
            sets.set("expressions", [])
    return parsed.sql("duckdb", identify=True), used


def _rewrite(node: Any) -> Any:
    """Replace what sqlglot leaves alone or reads otherwise than Spark."""
    if isinstance(node, exp.Quantile):  # Spark's percentile interpolates
        return exp.Anonymous(this="quantile_cont", expressions=[node.this, node.args["quantile"]])
    if not isinstance(node, exp.Anonymous):
        return node
    name, arguments = node.name.lower(), node.expressions
    if name == "timestamp_micros":
        return exp.Anonymous(this="make_timestamptz", expressions=arguments)
    if name == _MERGE:
        return exp.Anonymous(this=_MERGE, expressions=[exp.Anonymous(this="list", expressions=[arguments[0]])])
    return node
