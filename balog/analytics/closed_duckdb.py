"""Opens DuckDB in memory so that statements reach some files, and nothing else on this machine or outside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from balog.common.errors import MissingExtraError

if TYPE_CHECKING:
    import duckdb

SPILL = "20GB"
"""The most disk that a database takes in its temporary folder."""


def open_closed(
    files: Sequence[str] = (), *, folder: str = "", memory: str = "", threads: int = 0
) -> duckdb.DuckDBPyConnection:
    """Open a database in memory, in UTC, with locked settings and without extensions of others.

    No statement can open another file, a URL or a variable of Python, or change a setting. Views, tables, functions and
    Arrow tables can still be added.

    Args:
        files: the paths that can be read.
        folder: for what does not fit into memory, up to ``SPILL``; nothing is written without one.
        memory: the most memory, such as ``1GB``; DuckDB's default if empty.
        threads: how many threads; 0 for one per core.

    Raises:
        MissingExtraError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("asking events on this machine", "embedded") from None
    settings = {
        "TimeZone": "'UTC'",
        "temp_directory": text(folder),
        "max_temp_directory_size": text(SPILL),
        "python_enable_replacements": "false",
        "enable_external_file_cache": "false",  # a file may change under its name
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allowed_paths": f"[{', '.join(map(text, files))}]",
        "enable_external_access": "false",
        "lock_configuration": "true",
    }
    if memory:
        settings = {"memory_limit": text(memory), **settings}
    connection = duckdb.connect(":memory:", config={"threads": threads or os.cpu_count() or 1})
    try:  # after two seconds the bar would be on stdout, between the rows
        connection.execute("SET enable_progress_bar = false")
    except duckdb.InvalidInputException:  # a notebook without ipywidgets, which draws no bar
        pass
    try:
        for name, value in settings.items():
            connection.execute(f"SET {name} = {value}")
    except BaseException:
        connection.close()
        raise
    return connection


def quoted(name: str) -> str:
    """Return a name as an identifier of DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as a literal of DuckDB's SQL."""
    return "'" + value.replace("'", "''") + "'"
