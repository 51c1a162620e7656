"""Compacts small files into large ones; rollup rows with the same key are merged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from balog.analytics.rollups.frames import merge_hours
from balog.analytics.tables.log import TableFile
from balog.analytics.tables.stage import BatchStage, DayFiles
from balog.analytics.tables.store import StagedFile, TableError
from balog.analytics.tables.worker_rows import encode_files, run_in_workers

SMALL = 64 * 1024 * 1024
"""Files below this size, in bytes, are small. A day with several small files is compacted."""

_LARGE = 256 * 1024 * 1024


def small_files(files: Iterable[TableFile]) -> list[TableFile]:
    """Return the small files of days that have several."""
    days = defaultdict(list)
    for file in files:
        if file.size < SMALL:
            days[file.day].append(file)
    return [file for day in sorted(days) if len(days[day]) > 1 for file in days[day]]


def compacted(table: str, frame: DataFrame, files: Sequence[TableFile], folder: str, batch: str) -> list[StagedFile]:
    """Rewrite the rows of small files into few files, sorted by time.

    Args:
        table: the table's name.
        frame: the rows of ``files``, with ``date``.
        files: the small files.
        folder: where to stage the new files.
        batch: the batch's id.

    Raises:
        TableError: the new files don't have all rows of the old ones.
    """
    when = next((name for name in ("timestamp", "hour") if name in frame.columns), "")
    stage = BatchStage(folder, batch, datetime.now(timezone.utc))
    order = ["date", when] if when else ["date"]
    parts = -(-sum(file.size for file in files) // _LARGE)
    rows = frame
    if when == "hour":  # an hour lies in one day, so no row changes its day
        rows = merge_hours(table.removeprefix("rollup_"), frame).withColumn("date", f.to_date("hour"))
    rows = rows.coalesce(1) if parts == 1 else rows.repartitionByRange(parts, *order)
    rows = rows.sortWithinPartitions(*order)

    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        open_days: dict[object, DayFiles] = {}
        done: list[StagedFile] = []
        for batch_ in batches:
            whole = pa.Table.from_batches([batch_])
            for day in whole.column("date").unique().to_pylist():
                if day not in open_days:  # days come in order, so earlier ones are complete
                    done += [file for days in open_days.values() for file in days.close()]
                    open_days = {day: DayFiles(stage, table, day, when)}
                rows_ = whole.filter(pc.equal(whole.column("date"), pa.scalar(day, pa.date32())))
                open_days[day].add(rows_.drop_columns(["date"]))
        done += [file for days in open_days.values() for file in days.close()]
        yield encode_files([(table, file, None) for file in done])

    new_files = [file for _, file, _ in run_in_workers(rows, each)]
    before, after = sum(file.rows for file in files), sum(file.rows for file in new_files)
    if before != after and when != "hour":
        raise TableError(f"compaction read {after:,} of {before:,} rows; nothing was changed", table)
    return new_files
