"""Each event once: what a batch has twice, or what the tables have already, is taken out of its staged files.

Duplicates are the same event delivered again, so they share id and timestamp, and with it the day. Only 64-bit hashes
of the keys are shuffled to find suspects; there are none as a rule, and then the staged files are as they should be.
Suspects are compared by the keys themselves, and only the files that hold duplicates are written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from balog.analytics.tables.staging import BAD, EVENTS, FILES, Stage, decode_files, encode_files, without
from balog.analytics.tables.store import Part, Staged, Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["new_events", "new_quarantine"]


def new_events(spark: SparkSession, store: Store, stage: Stage, files: Sequence[Staged]) -> tuple[Part, int]:
    """Give the events of a batch that the tables don't have, each once, and how many others there were."""
    known = None
    if files and store.schema("events") is not None:
        first = min(file.first for file in files if file.first is not None)
        last = max(file.last for file in files if file.last is not None)
        between = f.col("timestamp").between(f.lit(first), f.lit(last))
        known = store.frame("events", first, last).where(between)
    day = f.to_date("timestamp").alias("day")
    kept, dropped = _drop(spark, stage, "events", Part(EVENTS, files), known, [f.col("id"), day])
    return Part(EVENTS, kept), dropped


def new_quarantine(spark: SparkSession, store: Store, stage: Stage, files: Sequence[Staged]) -> Part:
    """Give the bad lines of a batch that were not seen at the same place of the same file before."""
    known = store.frame("quarantine") if files and store.schema("quarantine") is not None else None
    keys = [f.col("file"), f.col("offset"), f.col("raw")]
    kept, _ = _drop(spark, stage, "quarantine", Part(BAD, files), known, keys)
    return Part(BAD, kept)


def _drop(
    spark: SparkSession, stage: Stage, table: str, part: Part, known: DataFrame | None, keys: list[Column]
) -> tuple[list[Staged], int]:
    if not part.files:
        return [], 0
    here = spark.read.schema(part.schema).parquet(*(file.path for file in part.files))
    hashed = f.xxhash64(*keys).alias("hash")
    hashes = here.select(hashed, f.lit(0).alias("old"))
    if known is not None:
        hashes = hashes.unionAll(known.select(hashed, f.lit(1).alias("old")))
    counted = hashes.groupBy("hash").agg(f.count("*").alias("rows"), f.sum("old").alias("old"))
    suspects = counted.where("rows > 1 AND old < rows").select("hash")
    if suspects.isEmpty():
        return list(part.files), 0
    names = [f.col(f"_{number}") for number in range(len(keys))]
    keyed = [key.alias(f"_{number}") for number, key in enumerate(keys)]
    place = [f.col("_metadata.file_name").alias("file"), f.col("_metadata.row_index").alias("row")]
    rows = [here.select(hashed, *keyed, *place, f.lit(1).alias("new"))]
    if known is not None:
        nowhere = [f.lit("").alias("file"), f.lit(0).cast("bigint").alias("row")]
        rows.append(known.select(hashed, *keyed, *nowhere, f.lit(0).alias("new")))
    among = [frame.join(suspects, "hash", "left_semi") for frame in rows]
    order = Window.partitionBy(*names).orderBy("new", "file", "row")
    ranked = reduce(lambda one, other: one.unionAll(other), among).withColumn("rank", f.row_number().over(order))
    drops = ranked.where("new = 1 AND rank > 1").select("file", "row")
    staged = {file.path.rsplit("/", 1)[-1]: file for file in part.files}

    def trim(key: tuple[pa.Scalar, ...], table_: pa.Table) -> pa.Table:
        file = staged[key[0].as_py()]
        left = without(stage, table, file, table_.column("row").combine_chunks())
        told = [(file.path, left or file._replace(path="", rows=0), None)]
        return pa.Table.from_batches([encode_files(told)])

    found = decode_files(drops.groupBy("file").applyInArrow(trim, FILES).toArrow())
    trimmed = {path: left for path, left, _ in found}
    kept = [trimmed.get(file.path, file) for file in part.files]
    kept = [file for file in kept if file.rows]
    return kept, part.rows - sum(file.rows for file in kept)
