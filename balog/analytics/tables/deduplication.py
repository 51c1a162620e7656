"""Each event once: what a batch has twice, or what the tables have already, is taken out of its staged files.

Duplicates have the same id. The event delivered again has the same timestamp, too, so a batch's events are looked for
near their times alone, which keeps the work of a batch the same however much there is. Where a line says no time, it
has another one in each copy: those are looked for everywhere.

Only 64-bit hashes of the keys are shuffled to find suspects; there are none as a rule, and then the staged files are as
they should be. Suspects are compared by the keys themselves, and only the files that hold duplicates are written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from balog.analytics.reading.forms.base import TIMELESS_ID
from balog.analytics.reading.timestamps import literal
from balog.analytics.tables.staging import BAD, EVENTS, FILES, BatchStage, decode_files, encode_files, without
from balog.analytics.tables.store import StagedFile, TablePart, TableStore, read_files
from balog.analytics.tables.write_errors import told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["WINDOW", "new_events", "new_quarantine", "spans"]

WINDOW = timedelta(hours=1)
"""An id is taken once if its timestamps are no farther from each other; a copy has the same timestamp as a rule."""

_EARLIEST = datetime.min.replace(tzinfo=timezone.utc) + WINDOW
_LATEST = datetime.max.replace(tzinfo=timezone.utc) - WINDOW
_MOST_SPANS = 30


def new_events(
    spark: SparkSession, store: TableStore, stage: BatchStage, files: Sequence[StagedFile], *, is_timeless: bool = False
) -> tuple[TablePart, int]:
    """Give the events of a batch that the tables don't have, each once, and how many others there were.

    Args:
        is_timeless: there are events whose lines say no time.
    """
    known = None
    if files and store.schema("events") is not None:
        frames = [_between(store.frame("events", *span), *span) for span in spans(files)]
        if is_timeless:
            frames.append(store.frame("events").where(f.col("id").startswith(TIMELESS_ID)))
        known = reduce(lambda one, other: one.unionAll(other), frames)
    kept, dropped = _drop(spark, stage, "events", TablePart(EVENTS, files), known, ["id"], ["timestamp"])
    return TablePart(EVENTS, kept), dropped


def spans(files: Sequence[StagedFile]) -> list[tuple[datetime, datetime]]:
    """Give the times in which copies of the events of files may be: within ``WINDOW`` of them.

    They are disjoint and in order; a few far days are as many spans, so that what lies between is not read.
    """
    merged: list[tuple[datetime, datetime]] = []
    ends = sorted((_aware(file.first), _aware(file.last)) for file in files if file.first and file.last)
    for first, last in ((max(first, _EARLIEST) - WINDOW, min(last, _LATEST) + WINDOW) for first, last in ends):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged if len(merged) <= _MOST_SPANS else [(merged[0][0], merged[-1][1])]


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _between(frame: DataFrame, first: datetime, last: datetime) -> DataFrame:
    return frame.where(f.col("timestamp").between(literal(first), literal(last)))


def new_quarantine(spark: SparkSession, store: TableStore, stage: BatchStage, files: Sequence[StagedFile]) -> TablePart:
    """Give the bad lines of a batch that were not seen at the same place of the same file before."""
    known = store.frame("quarantine") if files and store.schema("quarantine") is not None else None
    kept, _ = _drop(spark, stage, "quarantine", TablePart(BAD, files), known, ["file", "offset", "raw"], [])
    return TablePart(BAD, kept)


def _drop(
    spark: SparkSession,
    stage: BatchStage,
    table: str,
    part: TablePart,
    known: DataFrame | None,
    keys: Sequence[str],
    order: Sequence[str],
) -> tuple[list[StagedFile], int]:
    """Drop the staged rows of known keys; of those that have the same, the first in ``order`` stays."""
    if not part.files:
        return [], 0
    here = read_files(spark, part.schema, [file.path for file in part.files])
    hashed = f.xxhash64(*keys).alias("hash")
    hashes = here.select(hashed, f.lit(0).alias("old"))
    if known is not None:
        hashes = hashes.unionAll(known.select(hashed, f.lit(1).alias("old")))
    counted = hashes.groupBy("hash").agg(f.count("*").alias("rows"), f.sum("old").alias("old"))
    suspects = counted.where("rows > 1 AND old < rows").select("hash")
    if suspects.isEmpty():
        return list(part.files), 0
    columns = [f.col(name).alias(f"_{name}") for name in (*keys, *order)]
    place = [f.col("_metadata.file_name").alias("file"), f.col("_metadata.row_index").alias("row")]
    rows = [here.select(hashed, *columns, *place, f.lit(1).alias("new"))]
    if known is not None:
        nowhere = [f.lit("").alias("file"), f.lit(0).cast("bigint").alias("row")]
        rows.append(known.select(hashed, *columns, *nowhere, f.lit(0).alias("new")))
    among = [frame.join(suspects, "hash", "left_semi") for frame in rows]
    window = Window.partitionBy(*(f"_{name}" for name in keys))
    ranks = f.row_number().over(window.orderBy("new", *(f"_{name}" for name in order), "file", "row"))
    ranked = reduce(lambda one, other: one.unionAll(other), among).withColumn("rank", ranks)
    drops = ranked.where("new = 1 AND rank > 1").select("file", "row")
    staged = {file.path.rsplit("/", 1)[-1]: file for file in part.files}

    @told
    def trim(name: str, rows: pa.Array) -> Iterator[pa.RecordBatch]:
        left = without(stage, table, staged[name], rows)
        yield encode_files([(staged[name].path, left or staged[name]._replace(path="", rows=0), None)])

    def each(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        return pa.Table.from_batches(trim(key[0].as_py(), rows.column("row").combine_chunks()))

    found = decode_files(drops.groupBy("file").applyInArrow(each, FILES).toArrow())
    trimmed = {path: left for path, left, _ in found}
    kept = [trimmed.get(file.path, file) for file in part.files]
    kept = [file for file in kept if file.rows]
    return kept, part.rows - sum(file.rows for file in kept)
