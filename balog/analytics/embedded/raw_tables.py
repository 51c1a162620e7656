"""Raw events as tables of the embedded engine: the reader of Spark's workers writes what a statement needs to files."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from balog.analytics.tables.local import StoredTables
from balog.common.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from balog.analytics.reading.inputs import Inputs
    from balog.analytics.reading.tasks import Slice

_NAME = re.compile(r"""'[^']*'|--[^\n]*|(?:\bbalog|"balog")\s*\.\s*(?:"((?:[^"]|"")+)"|(\w+))""", re.IGNORECASE)
_COUNT = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)


def raw_paths(sql: str) -> list[str]:
    """Return the paths of raw events in a statement in DuckDB's SQL: ``balog."PATH"`` or ``balog.name``."""
    paths = (quoted.replace('""', '"') or plain for quoted, plain in _NAME.findall(sql))
    return list(dict.fromkeys(filter(None, paths)))


class QueryTables:
    """The tables of a statement: stored ones, and raw events of files.

    A context manager: what it writes is removed at the end.

    Args:
        stored: the tables of ``balog load``, or None.
        raw: options of the data source, by the name of the raw events in the statement.
        sql: the statement; only the columns of raw events that it names are read.
    """

    def __init__(self, stored: StoredTables | None, raw: Mapping[str, Mapping[str, str]], sql: str) -> None:
        self._stored, self._raw, self._sql = stored, raw, sql
        self._written: dict[str, tempfile.TemporaryDirectory[str]] = {}

    def __enter__(self) -> QueryTables:
        return self

    def __exit__(self, *error: object) -> None:
        for folder in self._written.values():
            folder.cleanup()

    def names(self) -> list[str]:
        """Return the names of the stored tables, sorted, and those of raw events."""
        return [*(self._stored.names() if self._stored is not None else []), *self._raw]

    def columns(self, name: str) -> dict[str, str]:
        """Return the types of a table's columns in DuckDB's SQL."""
        if self._stored is not None and name not in self._raw:
            return self._stored.columns(name)
        from balog.analytics.reading.projection import sql_type
        from balog.analytics.reading.schemas import TEXT_EVENT

        return {field.name: sql_type(field.type) for field in TEXT_EVENT}

    def read(self) -> None:
        """Read the raw events into Parquet files, once.

        Raises:
            ConfigError: the source is a topic.
            BalogError: a store does not answer.
            OSError: the disk is full.
        """
        for name in self._raw:
            if name not in self._written:
                self._written[name] = folder = tempfile.TemporaryDirectory(prefix="balog-query-")
                _write_events(self._inputs(name), self._schema(), Path(folder.name))

    def files(self, name: str) -> list[str]:
        """Return a table's Parquet files; see ``read``."""
        if self._stored is not None and name not in self._raw:
            return self._stored.files(name)
        self.read()
        return sorted(map(str, Path(self._written[name].name).glob("*.parquet")))

    def _schema(self) -> pa.StructType:
        from balog.analytics.reading.schemas import TEXT_EVENT, columns_of_statement

        words = set(re.findall(r"\w+", self._sql.lower()))
        is_of_all = "*" in _COUNT.sub("", self._sql) or not words & {"select", "describe"}
        return TEXT_EVENT if is_of_all or words & {"columns", "natural"} else columns_of_statement(words - {"payload"})

    def _inputs(self, name: str) -> Inputs:
        from balog.analytics.reading.inputs import read_inputs

        inputs = read_inputs(self._raw[name])
        if inputs.topics:
            raise ConfigError("topics are read by Spark; give --engine spark, and Spark's SQL", "SQL")
        return inputs


def _write_events(inputs: Inputs, schema: pa.StructType, folder: Path) -> None:
    """Write the events of files as Parquet, several tasks at a time: the parser works outside of Python's lock."""
    tasks = inputs.tasks()
    stopped = threading.Event()

    def write(number: int) -> None:
        _write_task(tasks[number], inputs, schema, folder / f"{number:06}.parquet", stopped)

    with ThreadPoolExecutor(inputs.parallel) as threads:
        try:
            for _ in threads.map(write, range(len(tasks))):
                pass
        finally:
            stopped.set()  # after an interrupt, the others end with their block


def _write_task(task: list[Slice], inputs: Inputs, schema: pa.StructType, path: Path, stopped: threading.Event) -> None:
    import pyarrow.parquet as pq

    from balog.analytics.reading.projection import project
    from balog.analytics.reading.scan import EventQuery, scan

    query = EventQuery(project(schema))
    with pq.ParquetWriter(path, query.arrow) as file:
        for batch in scan(task, query, inputs.storages, inputs.form):
            if stopped.is_set():
                return
            file.write_batch(batch)
