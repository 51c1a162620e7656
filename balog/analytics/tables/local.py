"""The stored rollups of a folder of tables, read by DuckDB without Spark."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from balog.analytics.engine import micros
from balog.analytics.questions.summaries import HOURS
from balog.analytics.rollups.schemas import Rollups
from balog.analytics.tables.log import CommitLog, folder_of, is_within
from balog.analytics.tables.store import ROLLUPS

if TYPE_CHECKING:
    from balog.analytics.duckdb_engine import DuckDBEngine

_TYPES = {"string": "VARCHAR", "long": "BIGINT", "integer": "INTEGER", "double": "DOUBLE", "binary": "BLOB",
          "timestamp": "TIMESTAMPTZ"}  # fmt: skip


class LocalRollups:
    """A snapshot of the rollups in a folder."""

    def __init__(self, location: str) -> None:
        self._root = folder_of(location)
        self._tables = CommitLog(self._root).state.tables

    def size(self) -> int | None:
        """Return the size of their files in bytes; None without rollups, or if a crash left files to be moved."""
        if not set(ROLLUPS.values()) <= set(self._tables):
            return None
        files = [(table, file) for table in ROLLUPS.values() for file in self._tables[table].files.values()]
        if not all((self._root / table / file.path).exists() for table, file in files):
            return None
        return sum(file.size for _, file in files)

    def files(self) -> list[str]:
        """Return their paths."""
        return [str(self._root / table / path) for table in ROLLUPS.values() for path in self._tables[table].files]

    def open(self, engine: DuckDBEngine, since: datetime | None, until: datetime | None) -> Rollups:
        """Return the rollups of the hours from ``since`` to before ``until``, and failures from all times before."""
        frames = {}
        for name, table in ROLLUPS.items():
            state = self._tables[table]
            fields = json.loads(state.columns)["fields"]
            columns = ", ".join(f'"{field["name"]}" {_duckdb_type(field["type"])}' for field in fields)
            first = None if name == "errors" else since
            files = [file.path for file in state.files.values() if is_within(file, first, until)]
            frame = engine.parquet([str(self._root / table / path) for path in files], columns)
            if name != "quarantine":
                frame = engine.sql(HOURS, {"since": micros(first), "until": micros(until)}, rows=frame)
            frames[name] = frame
        return Rollups(**frames)  # type: ignore[arg-type]


def _duckdb_type(kind: Any) -> str:
    """Return a type of Spark's JSON as DuckDB's."""
    if isinstance(kind, str):
        return _TYPES[kind]
    if kind["type"] == "array":
        return f"{_duckdb_type(kind['elementType'])}[]"
    return "STRUCT(" + ", ".join(f'"{field["name"]}" {_duckdb_type(field["type"])}' for field in kind["fields"]) + ")"
