"""The tables of ``balog load`` in a folder, read without Spark: their columns and files, and the rollups for DuckDB."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from balog.analytics.closed_duckdb import quoted, type_name
from balog.analytics.engine import micros
from balog.analytics.questions.summaries import HOURS
from balog.analytics.rollups.schemas import Rollups
from balog.analytics.tables.log import FOLDER, CommitLog, TableFile, folder_of, is_within
from balog.analytics.tables.store import ROLLUPS, TableError

if TYPE_CHECKING:
    from balog.analytics.duckdb_engine import DuckDBEngine


class StoredTables:
    """A snapshot of the tables at a location: a folder, or a ``file:`` URL.

    Raises:
        TableError: the log can't be read.
    """

    def __init__(self, location: str) -> None:
        self._root = folder_of(location)
        self._tables = CommitLog(self._root).state.tables

    def names(self) -> list[str]:
        """Return the names of all tables, sorted."""
        return sorted(self._tables)

    def columns(self, name: str) -> dict[str, str]:
        """Return the types of a table's columns in DuckDB's SQL, with ``date`` last.

        Raises:
            ConfigError: DuckDB has no equal type.
        """
        fields = json.loads(self._tables[name].columns)["fields"]
        return {**{field["name"]: type_name(field["type"]) for field in fields}, "date": "DATE"}

    def size(self, *names: str) -> int:
        """Return the size of the files of tables, in bytes."""
        return sum(file.size for name in names for file in self._tables[name].files.values())

    def files(self, name: str, since: datetime | None = None, until: datetime | None = None) -> list[str]:
        """Return a table's files; those outside of ``since`` to ``until`` are omitted.

        Raises:
            TableError: a file is missing.
        """
        files = self._tables[name].files.values()
        return [self._path(name, file) for file in files if is_within(file, since, until)]

    def _path(self, name: str, file: TableFile) -> str:
        path = self._root / name / file.path
        if not path.exists():  # a commit whose files were not moved yet
            staged = (self._root / FOLDER / "staging").glob(f"*/{name}/{file.path}")
            path = next(staged, path)
        if not path.exists():
            raise TableError("a file of the tables is missing; run the command again", str(path))
        return str(path)


def open_rollups(tables: StoredTables, engine: DuckDBEngine, since: datetime | None, until: datetime | None) -> Rollups:
    """Return the stored rollups of the hours from ``since`` to before ``until``, and failures from all times before."""
    frames = {}
    for name, table in ROLLUPS.items():
        columns = {column: kind for column, kind in tables.columns(table).items() if column != "date"}
        first = None if name == "errors" else since
        kinds = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
        frame = engine.parquet(tables.files(table, first, until), kinds)
        if name != "quarantine":
            frame = engine.sql(HOURS, {"since": micros(first), "until": micros(until)}, rows=frame)
        frames[name] = frame
    return Rollups(**frames)  # type: ignore[arg-type]
