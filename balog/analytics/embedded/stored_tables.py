"""The tables of ``balog load`` in a folder, read without Spark: their columns and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from balog.analytics.tables.log import FOLDER, CommitLog, folder_of
from balog.analytics.tables.store import TableError


class ReadableTables(Protocol):
    """Tables for statements on the embedded engine."""

    def names(self) -> list[str]:
        """Return the names of all tables."""
        ...

    def columns(self, name: str) -> dict[str, Any]:
        """Return the types of a table's columns, as in Spark's JSON of a schema."""
        ...

    def files(self, name: str) -> list[str]:
        """Return a table's Parquet files."""
        ...


class StoredTables:
    """A snapshot of the tables at a location: a folder, or a ``file:`` URL.

    Raises:
        TableError: the log can't be read.
    """

    def __init__(self, location: str) -> None:
        self._root = folder_of(location)
        self._state = CommitLog(self._root).state
        self._fields = {name: json.loads(table.columns)["fields"] for name, table in sorted(self._state.tables.items())}

    def names(self) -> list[str]:
        """Return the names of all tables, sorted."""
        return list(self._fields)

    def columns(self, name: str) -> dict[str, Any]:
        """Return the types of a table's columns, with ``date`` last."""
        return {**{field["name"]: field["type"] for field in self._fields[name]}, "date": "date"}

    def size(self, name: str) -> int:
        """Return the size of a table's files, in bytes."""
        return sum(file.size for file in self._state.tables[name].files.values())

    def files(self, name: str) -> list[str]:
        """Return a table's files.

        Raises:
            TableError: a file is missing.
        """
        return [str(self._path(name, path)) for path in self._state.tables[name].files]

    def _path(self, name: str, path: str) -> Path:
        found = self._root / name / path
        if not found.exists():  # a commit whose files were not moved yet
            staged = (self._root / FOLDER / "staging").glob(f"*/{name}/{path}")
            found = next(staged, found)
        if not found.exists():
            raise TableError("a file of the tables is missing; run the query again", str(found))
        return found
