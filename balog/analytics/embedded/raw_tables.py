"""Raw events as tables of the embedded engine: the reader of Spark's workers writes what a statement needs to files."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from balog.analytics.embedded.stored_tables import StoredTables
from balog.analytics.embedded.values import Kind, SparkNeeded

if TYPE_CHECKING:
    import pyarrow as pa

    from balog.analytics.reading.inputs import Inputs
    from balog.analytics.reading.tasks import Slice


class QueryTables:
    """The tables of a statement: stored ones, and raw events of files.

    A context manager: what it writes is removed at the end.

    Args:
        stored: the tables of ``balog load``, or None.
        raw: options of the data source, by the name of the raw events in the statement.
        words: the names in the statement; see ``columns_of_statement``.
    """

    def __init__(
        self, stored: StoredTables | None, raw: Mapping[str, Mapping[str, str]], words: Collection[str] | None = None
    ) -> None:
        self._stored, self._raw, self._words = stored, raw, words
        self._written: dict[str, tempfile.TemporaryDirectory[str]] = {}

    def __enter__(self) -> QueryTables:
        return self

    def __exit__(self, *error: object) -> None:
        for folder in self._written.values():
            folder.cleanup()

    def names(self) -> list[str]:
        """Return the names of the stored tables, sorted, and those of raw events."""
        return [*(self._stored.names() if self._stored is not None else []), *self._raw]

    def columns(self, name: str) -> dict[str, Kind]:
        """Return the types of a table's columns.

        Raises:
            SparkNeeded: the statement names the payload of raw events as a variant.
        """
        if self._stored is not None and name not in self._raw:
            return self._stored.columns(name)
        from balog.analytics.reading.schemas import TEXT_EVENT, json_type, names

        if "payload" in names(self._schema):
            raise SparkNeeded("the payload of raw events is a VARIANT (payload_json is its text)")
        return {field.name: json_type(field.type) for field in TEXT_EVENT}

    def size(self, names: list[str]) -> int:
        """Return the size of some tables' files, in bytes; a compressed byte of raw events counts as eight."""
        from balog.analytics.rollups.raw_files import size_of

        raw = sum(size_of(self._inputs(name).files()) for name in names if name in self._raw)
        return raw + (self._stored.size([name for name in names if name not in self._raw]) if self._stored else 0)

    def read(self, names: list[str], progress: str = "") -> None:
        """Read the raw events of some tables into Parquet files, once.

        Args:
            names: the tables.
            progress: see ``EventMeter``.

        Raises:
            BalogError: a store does not answer.
            OSError: the disk is full.
        """
        for name in names:
            if name in self._raw and name not in self._written:
                self._written[name] = folder = tempfile.TemporaryDirectory(prefix="balog-query-")
                _write_events(self._inputs(name), self._schema, Path(folder.name), progress)

    def files(self, name: str) -> list[str]:
        """Return a table's Parquet files; see ``read``."""
        if self._stored is not None and name not in self._raw:
            return self._stored.files(name)
        self.read([name])
        return sorted(map(str, Path(self._written[name].name).glob("*.parquet")))

    @property
    def _schema(self) -> pa.StructType:
        from balog.analytics.reading.schemas import columns_of_statement

        return columns_of_statement(self._words)

    def _inputs(self, name: str) -> Inputs:
        from balog.analytics.reading.inputs import read_inputs

        inputs = read_inputs(self._raw[name])
        if inputs.topics:
            raise SparkNeeded("the source is a topic")
        return inputs


def _write_events(inputs: Inputs, schema: pa.StructType, folder: Path, progress: str) -> None:
    """Write the events of files as Parquet, several tasks at a time: the parser works outside of Python's lock."""
    tasks = inputs.tasks()
    stopped = threading.Event()

    def write(number: int) -> None:
        _write_task(tasks[number], inputs, schema, folder / f"{number:06}.parquet", progress, stopped)

    with ThreadPoolExecutor(inputs.parallel) as threads:
        try:
            for _ in threads.map(write, range(len(tasks))):
                pass
        finally:
            stopped.set()  # after an interrupt, the others end with their block


def _write_task(
    task: list[Slice], inputs: Inputs, schema: pa.StructType, path: Path, progress: str, stopped: threading.Event
) -> None:
    import pyarrow.parquet as pq

    from balog.analytics.progress import EventMeter
    from balog.analytics.reading.projection import project
    from balog.analytics.reading.scan import EventQuery, scan

    query, meter = EventQuery(project(schema)), EventMeter(progress, path.stem)
    try:
        with pq.ParquetWriter(path, query.arrow) as file:
            for batch in scan(task, query, inputs.storages, inputs.forms):
                if stopped.is_set():
                    return
                file.write_batch(batch)
                meter.add(batch.num_rows)
    finally:
        meter.close()
