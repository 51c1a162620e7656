"""Derives the rows of payload types' tables, and rollup rows, from staged events. It runs in workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from balog.analytics.reading.spark_types import arrow_schema
from balog.analytics.rollups.worker import EVENT_COLUMNS, gathered, roll_batches, with_context
from balog.analytics.tables.column_conversion import Columns
from balog.analytics.tables.log import read_columns
from balog.analytics.tables.stage import BatchStage, DayFiles
from balog.analytics.tables.store import RowError, StagedFile
from balog.analytics.tables.table_schema import FACILITY
from balog.analytics.tables.verification import difference, rows_to_compare
from balog.analytics.tables.worker_rows import count_rows, encode_files

ROLLED = "-rollup"
"""The folder below a batch's folder for rollup rows, from which the tables of rollups are built."""

_ROWS = 100_000  # rows at a time
_WAITING = 192 * 1024 * 1024  # buffered bytes of all tables before they are flushed
_TASK_ROWS = 300_000
_MOST_FILES = 4  # of one day in a task, on average; a machine of two cores makes no more
_CLOSED = 16  # tables to write and sync at a time
_COMPARED = 1_000  # rows to convert to Python at a time
_CONTEXT_KEYS = ("run_id", "application")


class PayloadTable(NamedTuple):
    """A payload type, its table, the table's columns as Spark's JSON, and whether the batch changes them."""

    cls_type: str
    table: str
    schema: str
    is_new: bool = False


@dataclass(frozen=True)
class Derivation:
    """Derives tables from events; Spark sends it to its workers."""

    stage: BatchStage
    kinds: Sequence[PayloadTable]

    def run(self, paths: Iterable[str], *, merge: bool = False) -> Iterator[pa.RecordBatch]:
        """Read staged files of events and yield rows of ``staging.FILES``, including those of ``ROLLED``.

        Args:
            paths: the files.
            merge: also write the events again, as one file of each day.

        Raises:
            RowError: an event can't be converted to a row, or a row differs from its payload.
        """
        kinds = {kind.cls_type: kind for kind in self.kinds}
        has_table = pa.array(kinds, pa.string())
        untyped = 0
        tables: dict[str, _Typed] = {}
        rolled = DayFiles(self.stage, ROLLED, self.stage.loaded.date())
        merged = DayFiles(self.stage, "events")
        for read in _read(paths):
            if merge:
                merged.add(pa.Table.from_batches([read]))
            batch = with_context(read)
            for rows in roll_batches(iter([batch.select(EVENT_COLUMNS)])):
                rolled.add(pa.Table.from_batches([rows]))
            types = batch.column("cls_type")
            untyped += pc.sum(pc.invert(pc.is_in(types, has_table))).as_py()
            for name in pc.unique(types).to_pylist():
                if name in kinds:
                    if name not in tables:  # a task has events of few of many types
                        tables[name] = _Typed(self.stage, kinds[name])
                    tables[name].add(batch.filter(pc.equal(types, name)))
            if sum(table.days.waiting for table in tables.values()) > _WAITING:
                for table in tables.values():
                    table.days.flush()
        with ThreadPoolExecutor(_CLOSED) as threads:  # a disk syncs many files together
            closed = threads.map(lambda table: table.days.close(), tables.values())
            staged = [(table.kind.table, file, None) for table, files in zip(tables.values(), closed) for file in files]
        staged += [(ROLLED, file, None) for file in rolled.close()]
        staged += [("events", file, None) for file in merged.close()]
        yield encode_files([*staged, *count_rows({"untyped": untyped})])


def _read(paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files; small files are combined."""

    def batches() -> Iterator[pa.RecordBatch]:
        for path in paths:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(_ROWS, use_threads=False)

    for table in gathered(batches()):
        yield table.combine_chunks().to_batches()[0]


class _Typed:
    """Writes the table of one payload type, in a worker."""

    def __init__(self, stage: BatchStage, kind: PayloadTable) -> None:
        self.kind = kind
        self.days = DayFiles(stage, kind.table)
        self._schema = read_columns(kind.schema)
        self._arrow = arrow_schema(self._schema)
        self._columns = Columns(self._schema, kind.cls_type)
        self._seen = 0

    def add(self, events: pa.RecordBatch) -> None:
        """Add events of the type.

        Raises:
            RowError: see ``Derivation.run``.
        """
        try:
            table = self._made(events)
        except MemoryError:
            raise
        except Exception as error:  # whatever the error is, the user needs to know the event
            raise self._row_error(events, error) from error
        self._check(events, table)
        self._seen += events.num_rows
        self.days.add(table)

    def _made(self, events: pa.RecordBatch) -> pa.Table:
        payload = self._columns.arrays(events.column("payload_json").cast(pa.binary()).to_pylist())
        arrays = [events.column(name) if name in FACILITY.names else payload[name] for name in self._schema.names]
        return pa.Table.from_arrays(arrays, self._schema.names).cast(self._arrow)

    def _check(self, events: pa.RecordBatch, table: pa.Table) -> None:
        numbers = rows_to_compare(self._seen, events.num_rows, is_new=self.kind.is_new)
        for start in range(0, len(numbers), _COMPARED):
            some = pa.array(numbers[start : start + _COMPARED])
            rows = table.take(some).to_pylist()
            contexts, texts, ids = (events.column(name).take(some) for name in ("context", "payload_json", "id"))
            for row, context, text, event in zip(rows, *(column.to_pylist() for column in (contexts, texts, ids))):
                field = difference(self._schema, self.kind.cls_type, row, text)
                bound = dict(reversed(context or ()))
                field = field or next((name for name in _CONTEXT_KEYS if row[name] != bound.get(name)), None)
                if field is not None or row["id"] != event:
                    reason = "the row has another value than the payload"
                    raise RowError(self.kind.table, field or "id", event, reason)

    def _row_error(self, events: pa.RecordBatch, error: Exception) -> RowError:
        """Return an error for the first event that fails alone."""
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        ids = events.column("id").to_pylist()
        for number, event in enumerate(ids):
            try:
                self._made(events.slice(number, 1))
            except Exception:  # the error of all events together is reported
                return RowError(self.kind.table, "payload_json", event, reason)
        return RowError(self.kind.table, "payload_json", ids[0], f"{reason} (of {len(ids):,} events together)")


class DerivationTask(NamedTuple):
    """Staged files of events for one task."""

    files: list[StagedFile]

    @property
    def paths(self) -> list[str]:
        """The files' paths."""
        return [file.path for file in self.files]

    @property
    def merge(self) -> bool:
        """Whether the events should be written again: many tasks have read, and each has written a file of each day."""
        return len(self.files) > _MOST_FILES * len({file.day for file in self.files})


def share_files(files: Sequence[StagedFile]) -> list[DerivationTask]:
    """Assign files to tasks; files of the same day are together, so that few tasks write to the same day."""
    tasks: list[DerivationTask] = []
    rows = 0
    for file in sorted(files, key=lambda file: (file.day, file.path)):
        if not tasks or rows + file.rows > _TASK_ROWS:
            tasks.append(DerivationTask([]))
            rows = 0
        tasks[-1].files.append(file)
        rows += file.rows
    return tasks
