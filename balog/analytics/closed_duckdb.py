"""Opens DuckDB in memory so that statements reach some files, and nothing else on this machine or outside."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from balog.common.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    import duckdb

SPILL = "20GB"
"""The most disk that a database takes in its temporary folder."""

_TYPES = {"boolean": "BOOLEAN", "byte": "TINYINT", "short": "SMALLINT", "integer": "INTEGER", "long": "BIGINT",
          "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "date": "DATE", "timestamp": "TIMESTAMPTZ",
          "void": "INTEGER"}  # fmt: skip
_DECIMAL = re.compile(r"decimal\(\d+,\s*-?\d+\)")


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


def type_name(kind: Any) -> str:
    """Return a type of Spark's JSON of a schema in DuckDB's SQL.

    Raises:
        ConfigError: DuckDB has no equal type.
    """
    if isinstance(kind, dict):
        if kind["type"] == "array":
            return f"{type_name(kind['elementType'])}[]"
        if kind["type"] == "map":
            return f"MAP({type_name(kind['keyType'])}, {type_name(kind['valueType'])})"
        fields = (f"{quoted(field['name'])} {type_name(field['type'])}" for field in kind["fields"])
        return f"STRUCT({', '.join(fields)})"
    if kind in _TYPES:
        return _TYPES[kind]
    if _DECIMAL.fullmatch(kind):
        return str(kind)
    raise ConfigError(f"a column is of the type {kind}; run it with --engine spark", "SQL")
