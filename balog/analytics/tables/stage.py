"""Stages events in workers, as Parquet files by day, sorted by time.

Workers parse and write in Arrow, so that no event passes through the JVM. The driver gets a small row for each file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import types as t

from balog.analytics.reading.forms.converter import TIMELESS_ID
from balog.analytics.reading.spark_types import QUARANTINE, TEXT_EVENT
from balog.analytics.tables.shapes import Shapes
from balog.analytics.tables.store import StagedFile
from balog.analytics.tables.worker_rows import SHAPE, Row, count_rows, encode_files
from balog.common.storage.local_files import sync

EVENTS = t.StructType(TEXT_EVENT.fields[:-1])
"""The table ``events``: the facility layer typed, the payload as its original text."""

BAD = t.StructType([*QUARANTINE.fields, t.StructField("loaded", t.TimestampType())])
"""The table ``quarantine``; ``loaded`` is the time of the load."""

_GROUP_BYTES = 96 * 1024 * 1024  # bytes of Arrow to buffer before a row group of each day is written
_GROUP_ROWS = 250_000
_THIN_ROWS = 1_000  # a day with fewer rows waits for more of the same day, because each file has a cost
_MOST_OPEN = 64  # open days; unsorted dumps of several years make more files, not more memory
_REPEATING = ("channel", "level", "schema", "cls_type", "key", "value", "run_id", "application", "file", "reason")
_TEXTS = ("payload_json", "raw")  # columns without useful statistics


@dataclass(frozen=True)
class BatchStage:
    """Where and how a batch's events are staged.

    Attributes:
        folder: the result of ``ParquetStore.staging``.
        batch: the batch's id, which is part of each file's name.
        loaded: the start of the load.
        floor: events of earlier days are counted and skipped.
        schemas: the tables' columns, by name, as Spark's JSON.
    """

    folder: str
    batch: str
    loaded: datetime
    floor: date | None = None
    schemas: Mapping[str, str] = field(default_factory=dict)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage rows of ``schemas.TEXT_EVENT`` as the tables ``events`` and ``quarantine``; yield rows of ``FILES``."""
        events = DayFiles(self, "events")
        bad = DayFiles(self, "quarantine", self.loaded.date())
        shapes = Shapes(self.schemas)
        counts: Counter[str] = Counter()
        for good, wrong in self._split(batches, shapes, counts):
            events.add(good)
            if len(wrong):
                bad.add(self._bad(wrong))
        rows: list[Row] = [("events", file, None) for file in events.close()]
        rows += [("quarantine", file, None) for file in bad.close()]
        yield encode_files([*rows, *_shaped(shapes), *count_rows(counts)])

    def preview(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of ``FILES`` with the number of events and invalid lines, and with shapes; nothing is written."""
        shapes = Shapes(self.schemas)
        counts: Counter[str] = Counter()
        for good, wrong in self._split(batches, shapes, counts):
            counts["events"] += good.num_rows
            counts["quarantine"] += len(wrong)
        yield encode_files([*_shaped(shapes), *count_rows(counts)])

    def _split(
        self, batches: Iterable[pa.RecordBatch], shapes: Shapes, counts: Counter[str]
    ) -> Iterator[tuple[pa.Table, pa.StructArray]]:
        """Yield the wanted events of each batch, whose shapes are observed, and its invalid lines."""
        for batch in batches:
            counts["read"] += batch.num_rows
            good, wrong = pa.Table.from_batches([batch]).drop_columns(["quarantine"]), batch.column("quarantine")
            if wrong.null_count < len(wrong):
                good = good.filter(wrong.is_null())
            good = self._wanted(good, counts)
            if good.num_rows:
                shapes.observe(good)
            yield good, wrong.drop_null()

    def _wanted(self, events: pa.Table, counts: Counter[str]) -> pa.Table:
        if self.floor is not None:
            before, times = events.num_rows, events.column("timestamp")
            limit = datetime(self.floor.year, self.floor.month, self.floor.day, tzinfo=timezone.utc)
            events = events.filter(pc.greater_equal(times, pa.scalar(limit, times.type)))
            counts["old"] += before - events.num_rows
        counts["timeless"] += pc.sum(pc.starts_with(events.column("id"), TIMELESS_ID)).as_py() or 0
        return events

    def _bad(self, wrong: pa.StructArray) -> pa.Table:
        table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(wrong)])
        when = pa.array([self.loaded] * table.num_rows, pa.timestamp("us", "UTC"))
        return table.append_column("loaded", when)


def _shaped(shapes: Shapes) -> Iterator[Row]:
    for name, rows, shape in shapes.seen():
        yield SHAPE, StagedFile(name, date.min, rows, 0), shape
    yield from count_rows({"unseen": shapes.unseen})


def rewrite_without(stage: BatchStage, table: str, staged: StagedFile, dropped: pa.Array) -> StagedFile | None:
    """Rewrite a staged file without the rows of these indices; return None if no row is left."""
    source = pq.ParquetFile(staged.path)
    gone = pc.unique(dropped).cast(pa.int64())
    if len(gone) >= staged.rows:
        return None
    when = "timestamp" if "timestamp" in source.schema_arrow.names else ""
    file = _File(stage, table, staged.day, source.schema_arrow)
    start = 0
    for number in range(source.num_row_groups):
        group = source.read_row_group(number)
        rows = pa.array(range(start, start + group.num_rows), pa.int64())
        start += group.num_rows
        kept = group.filter(pc.invert(pc.is_in(rows, gone)))
        if kept.num_rows:
            times = [kept.column(when)[index].as_py() for index in (0, -1)] if when else []
            file.write(kept, *times)
    return file.close()


class DayFiles:
    """The files of one table that a worker writes: one for each day, or all for one ``day``.

    Attributes:
        waiting: bytes that are not written yet.
    """

    def __init__(self, stage: BatchStage, table: str, day: date | None = None, when: str = "timestamp") -> None:
        self._stage, self._table, self._day, self._when = stage, table, day, when
        self._tables: list[pa.Table] = []
        self.waiting = self._rows = 0
        self._thin: dict[date, list[pa.Table]] = {}
        self._thin_rows = 0
        self._open: dict[date, _File] = {}
        self._done: list[StagedFile] = []

    def add(self, table: pa.Table) -> None:
        """Buffer rows; they are written when they fill a row group."""
        if not table.num_rows:
            return
        self._tables.append(table)
        self.waiting += table.nbytes
        self._rows += table.num_rows
        if self.waiting >= _GROUP_BYTES or self._rows >= _GROUP_ROWS:
            self.flush()

    def close(self) -> list[StagedFile]:
        """Finish the files and return them."""
        self.flush()
        self._write_thin()
        self._done += [file.close() for file in self._open.values()]
        self._open.clear()
        return self._done

    def flush(self) -> None:
        """Write the buffered rows."""
        if not self._tables:
            return
        table = pa.concat_tables(self._tables).combine_chunks()
        self._tables, self.waiting, self._rows = [], 0, 0
        if self._day is not None:
            self._file(self._day, table.schema).write(table)
            return
        times = table.column(self._when)
        if len(times) > 1 and not pc.all(pc.less_equal(times[:-1], times[1:])).as_py():
            table = table.take(pc.sort_indices(times))
            times = table.column(self._when)
        lengths = pc.run_end_encode(pc.cast(times.combine_chunks(), pa.date32()))
        start = 0
        for end, day in zip(lengths.run_ends.to_pylist(), lengths.values.to_pylist()):
            part = table.slice(start, end - start)
            start = end
            if part.num_rows < _THIN_ROWS and day not in self._open:
                # a copy: a slice would keep the whole table in memory
                self._thin.setdefault(day, []).append(part.take(pa.array(range(part.num_rows))))
                self._thin_rows += part.num_rows
            else:
                self._write(day, part)
        if self._thin_rows > _GROUP_ROWS:
            self._write_thin()

    def _write_thin(self) -> None:
        for day in sorted(self._thin):
            part = pa.concat_tables(self._thin[day]).combine_chunks()
            self._write(day, part.take(pc.sort_indices(part.column(self._when))))
        self._thin, self._thin_rows = {}, 0

    def _write(self, day: date, rows: pa.Table) -> None:
        times = rows.column(self._when)
        self._file(day, rows.schema).write(rows, times[0].as_py(), times[len(times) - 1].as_py())

    def _file(self, day: date, schema: pa.Schema) -> _File:
        file = self._open.pop(day, None)
        if file is None:
            if len(self._open) >= _MOST_OPEN:
                self._done.append(self._open.pop(next(iter(self._open))).close())
            file = _File(self._stage, self._table, day, schema)
        self._open[day] = file  # the file that was used last is closed last
        return file


class _File:
    """One Parquet file; it is durable when it is closed."""

    def __init__(self, stage: BatchStage, table: str, day: date, schema: pa.Schema) -> None:
        folder = os.path.join(stage.folder, table, f"date={day.isoformat()}")
        os.makedirs(folder, exist_ok=True)
        self._day, self._rows = day, 0
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._path = os.path.join(folder, f"part-{stage.batch}-{uuid4().hex[:12]}.parquet")
        self._file = open(self._path, "xb")  # noqa: SIM115
        leaves = [name for name in schema.names if name not in _TEXTS]
        self._writer = pq.ParquetWriter(
            self._file,
            schema.remove_metadata(),
            compression="zstd",
            use_dictionary=_columns(schema, _REPEATING),
            write_statistics=leaves,
            write_page_index=True,
        )

    def write(self, table: pa.Table, first: datetime | None = None, last: datetime | None = None) -> None:
        self._writer.write_table(table.replace_schema_metadata(None))
        self._rows += table.num_rows
        if first is not None:
            self._first = first if self._first is None else min(first, self._first)
        if last is not None:
            self._last = last if self._last is None else max(last, self._last)

    def close(self) -> StagedFile:
        self._writer.close()
        sync(self._file)
        size = self._file.tell()
        self._file.close()
        return StagedFile(self._path, self._day, self._rows, size, self._first, self._last)


def _columns(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Return the paths of the Parquet columns with these names."""
    paths = []
    for column in schema:
        if pa.types.is_map(column.type):
            paths += [f"{column.name}.key_value.key", f"{column.name}.key_value.value"]
        elif column.name in names:
            paths.append(column.name)
    return paths
