"""Removes duplicates from a batch's staged files: events that the batch has twice, or that the tables have already.

Duplicates have the same id. A redelivered event also has the same timestamp, so events are only compared with others of
about the same time, and the cost of a batch does not grow with the tables. If a line has no time, each copy gets
another one; these events are compared with all others.

To find suspects, only 64-bit hashes of the keys are shuffled. Usually there are none, and the staged files stay as they
are. Suspects are compared by their keys, and only files with duplicates are rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from balog.analytics.reading.forms.converter import TIMELESS_ID
from balog.analytics.reading.spark_types import literal
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.stage import BAD, EVENTS, BatchStage, rewrite_without
from balog.analytics.tables.store import StagedFile, TablePart, read_files
from balog.analytics.tables.worker_rows import FILES, decode_files, encode_files, report_errors

WINDOW = timedelta(hours=1)
"""Events with the same id are duplicates if their timestamps differ by no more; usually they are equal."""

_EARLIEST = datetime.min.replace(tzinfo=timezone.utc) + WINDOW
_LATEST = datetime.max.replace(tzinfo=timezone.utc) - WINDOW
_MOST_SPANS = 30


def new_events(
    spark: SparkSession,
    store: ParquetStore,
    stage: BatchStage,
    files: Sequence[StagedFile],
    *,
    is_timeless: bool = False,
) -> tuple[TablePart, int]:
    """Return the events of a batch that the tables don't have, each once, and the number of dropped events.

    Args:
        spark: the session.
        store: the tables.
        stage: where to stage.
        files: the staged events.
        is_timeless: some events come from lines without a time.
    """
    known = None
    if files and store.schema("events") is not None:
        frames = [store.frame("events", *span).where(is_within(*span)) for span in spans(files)]
        if is_timeless:
            frames.append(store.frame("events").where(f.col("id").startswith(TIMELESS_ID)))
        known = reduce(lambda frame, other: frame.unionAll(other), frames)
    kept, dropped = _drop(spark, stage, "events", TablePart(EVENTS, files), known, ["id"], ["timestamp"])
    return TablePart(EVENTS, kept), dropped


def is_within(first: datetime, last: datetime) -> Column:
    """Return the condition that a row's time is in a range.

    As a filter for Parquet's reader, Spark moves times on days that the Julian calendar does not have (October 5 to 14,
    1582). Microseconds are not passed to that reader.
    """
    if first.year > 1582:
        return f.col("timestamp").between(literal(first), literal(last))
    return f.unix_micros("timestamp").between(f.unix_micros(literal(first)), f.unix_micros(literal(last)))


def spans(files: Sequence[StagedFile]) -> list[tuple[datetime, datetime]]:
    """Return the time ranges in which duplicates of the files' events may be: within ``WINDOW`` of them.

    The ranges are disjoint and sorted. Distant days are separate ranges, so that the time between is not read.
    """
    merged: list[tuple[datetime, datetime]] = []
    ends = sorted((file.first, file.last) for file in files if file.first and file.last)
    for first, last in ((max(first, _EARLIEST) - WINDOW, min(last, _LATEST) + WINDOW) for first, last in ends):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged if len(merged) <= _MOST_SPANS else [(merged[0][0], merged[-1][1])]


def new_quarantine(
    spark: SparkSession, store: ParquetStore, stage: BatchStage, files: Sequence[StagedFile]
) -> TablePart:
    """Return the invalid lines of a batch that the tables don't have at the same position of the same file."""
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
    """Drop staged rows with known keys; of several rows with the same key, keep the first in ``order``."""
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
    positions = [f.col("_metadata.file_name").alias("file"), f.col("_metadata.row_index").alias("row")]
    rows = [here.select(hashed, *columns, *positions, f.lit(1).alias("new"))]
    if known is not None:
        nowhere = [f.lit("").alias("file"), f.lit(0).cast("bigint").alias("row")]
        rows.append(known.select(hashed, *columns, *nowhere, f.lit(0).alias("new")))
    among = [frame.join(suspects, "hash", "left_semi") for frame in rows]
    window = Window.partitionBy(*(f"_{name}" for name in keys))
    ranks = f.row_number().over(window.orderBy("new", *(f"_{name}" for name in order), "file", "row"))
    ranked = reduce(lambda frame, other: frame.unionAll(other), among).withColumn("rank", ranks)
    drops = ranked.where("new = 1 AND rank > 1").select("file", "row")
    staged = {file.path.rsplit("/", 1)[-1]: file for file in part.files}

    @report_errors
    def trim(name: str, rows: pa.Array) -> Iterator[pa.RecordBatch]:
        left = rewrite_without(stage, table, staged[name], rows)
        yield encode_files([(staged[name].path, left or staged[name]._replace(path="", rows=0), None)])

    def each(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        return pa.Table.from_batches(trim(key[0].as_py(), rows.column("row").combine_chunks()))

    rewrites = decode_files(drops.groupBy("file").applyInArrow(each, FILES).toArrow())
    trimmed = {path: left for path, left, _ in rewrites}
    kept = [trimmed.get(file.path, file) for file in part.files]
    kept = [file for file in kept if file.rows]
    return kept, part.rows - sum(file.rows for file in kept)
