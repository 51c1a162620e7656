"""Loads continuously: Structured Streaming passes new events, and each batch is one commit."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from balog.analytics.reading.spark_types import TEXT_EVENT
from balog.analytics.reading.streaming.planner import check_streaming
from balog.analytics.sessions import cause, parallelism
from balog.analytics.tables.builder import BuiltBatch, build
from balog.analytics.tables.loader import LoadOptions, LoadSummary, stage_of
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.store import TableBatch
from balog.analytics.tables.worker_rows import run_in_workers
from balog.common.errors import BalogError, ConfigError

EVERY = timedelta(seconds=5)
"""The interval between batches, unless a batch takes longer."""

_COMPACT_AFTER = 100  # batches
_LOOK = 0.2  # seconds between checks whether to stop


def follow(
    spark: SparkSession,
    store: ParquetStore,
    paths: Sequence[str],
    options: LoadOptions,
    is_over: Callable[[], bool],
    notify: Callable[[str], None] = lambda words: None,
    *,
    every: timedelta = EVERY,
    compact: bool = False,
) -> LoadSummary:
    """Load new events until ``is_over``; a batch that is in flight is finished. The caller holds ``store.writing()``.

    The position is stored with the tables, and the next call continues from there. After a crash between a batch's
    commit and Spark's checkpoint, Spark passes the same batch again, and it is skipped by its number.

    Args:
        spark: the session.
        store: the tables.
        paths: growing folders and files, and topics.
        options: how to load.
        is_over: returns whether to stop.
        notify: called with the current step.
        every: the interval between batches.
        compact: compact small files after every hundred batches.

    Raises:
        ConfigError: a path does not exist, Spark is older than 4.2, or the session is one of Spark Connect, whose
            server can't call this process.
        BalogError: a batch failed; earlier ones are committed.
    """
    if ".connect." in type(spark).__module__:
        raise ConfigError("it needs Spark's driver in this process; give --master, or leave it out", "--follow")
    check_streaming()
    stream = _Stream(spark, store, paths, options, notify, compact)
    reader = spark.readStream.format("balog").schema(TEXT_EVENT).options(**options.reader)
    reader = reader.options(paths=json.dumps(list(paths)), state=str(stream.checkpoint / "arrivals"))
    cores = parallelism(spark)
    reader = reader.options(maxBytesPerTrigger=str(options.most_bytes(cores)))
    if "parallel" not in options.reader:
        reader = reader.option("parallel", str(cores))
    writer = reader.load().writeStream.foreachBatch(stream.take)
    writer = writer.trigger(processingTime=f"{every.total_seconds()} seconds")
    began = time.monotonic()
    query = writer.option("checkpointLocation", str(stream.checkpoint / "spark")).start()
    try:
        while query.isActive and not is_over():
            time.sleep(_LOOK)
        with stream.lock:  # a batch that is in flight is finished; the next one stops
            stream.over.set()
        error = None if query.isActive else query.exception()
    finally:
        stream.over.set()
        query.stop()
    if stream.failure is not None:
        raise stream.failure
    if error is not None:
        raise BalogError(f"the stream ended: {cause(error):.300}; run it again to go on")
    return replace(stream.summary, seconds=time.monotonic() - began)


@dataclass
class _Stream:
    """Loads the batches of one stream."""

    spark: SparkSession
    store: ParquetStore
    paths: Sequence[str]
    options: LoadOptions
    notify: Callable[[str], None]
    compact: bool
    summary: LoadSummary = field(default_factory=LoadSummary)
    lock: threading.Lock = field(default_factory=threading.Lock)
    failure: BalogError | None = None
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        known = json.dumps([sorted(self.paths), sorted(self.options.reader.items())])
        self.checkpoint = Path(self.store.checkpoint(f"follow-{hashlib.sha256(known.encode()).hexdigest()[:16]}"))
        self._name = _name(self.checkpoint)

    def take(self, frame: DataFrame, number: int) -> None:
        """Load a batch; an error ends the stream before Spark marks the batch as done."""
        with self.lock:
            if self.over.is_set():
                raise _OverError("it was asked to stop")
            if self.store.loaded().streams.get(self._name, -1) >= number:
                return
            try:
                self.summary.add(self._load(frame, number))
                if self.compact and number % _COMPACT_AFTER == _COMPACT_AFTER - 1:
                    self.store.compact()
            except BalogError as error:
                self.failure = error
                raise

    def _load(self, frame: DataFrame, number: int) -> BuiltBatch:
        words = f"batch {number}, {self.summary.rows['events']:,} events so far"
        self.notify(f"Reading {words}")
        batch = f"{self._name}-{number}"
        stage = stage_of(self.store, self.store.staging(batch), batch)
        built = build(self.spark, self.store, stage, run_in_workers(frame, stage.run))
        self.store.commit(TableBatch(batch, built.parts, stream=(self._name, number)))
        self.notify(f"Waiting after {words}")
        return built


class _OverError(Exception):
    pass


def _name(checkpoint: Path) -> str:
    """Return the name of the checkpoint's stream; a new checkpoint counts batches from the beginning."""
    path = checkpoint / "name"
    if not path.exists():
        part = checkpoint / ".name"
        part.write_text(f"{checkpoint.name}-{os.urandom(4).hex()}")
        part.replace(path)
    return path.read_text()
