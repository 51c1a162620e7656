"""Runs a filter as a Spark job: writes the matching events of archives and topics, or parts of them, to a sink.

Spark evaluates the condition; conditions on time, channel, level and type apply while lines are parsed. The workers
compute and write the selected events in Python, with the same code as the service, so both make the same events with
the same ids.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from balog.analytics.reading.schemas import EVENT
from balog.analytics.reading.spark_types import arrow_schema, struct
from balog.analytics.rollups.selection import event_from_row
from balog.common.errors import BalogError
from balog.common.storage import StorageError, open_storage
from balog.delivery.attempt import attempt, reason_of
from balog.event import Event, encode, new_id
from balog.filters.event_filter import EventFilter
from balog.sinks.archive.store_part import MANIFESTS, describe
from balog.sinks.base import Delivery, Sink, SinkConfig, SinkError
from balog.sinks.store import StoreSinkConfig

_COLUMNS = f"{EVENT}, cls_type string, context map<string,string>, context_json string, payload_json string"
_TAKEN = ("id", "channel", "timestamp", "level", "schema", "composition", "context_json", "payload_json")
_COUNTS = "wanted bigint, written bigint, refused bigint, reason string"
_ARROW = arrow_schema(struct(_COUNTS))
_TRIES = 8
_BATCH = 1000


class Filtered(Struct):
    """The number of events that matched a filter, that were written, and that the sink rejected.

    ``reason`` is the reason for one of the rejected events.
    """

    wanted: int = 0
    written: int = 0
    refused: int = 0
    reason: str = ""

    def deliver(self, sink: Sink, config: SinkConfig, batch: list[Delivery]) -> None:
        """Write a batch, and count what becomes of it."""
        self.wanted += len(batch)

        def once() -> None:
            nonlocal batch
            outcome = attempt(sink.write, batch)
            self.written += outcome.taken
            self.refused += len(outcome.dead)
            self.reason = self.reason or next(iter(outcome.dead.values()), "")
            batch = [batch[number] for number in outcome.left]
            if batch and outcome.error is not None:
                raise outcome.error

        _with_retries(once, config)


def read_events(spark: SparkSession, paths: Sequence[str], selection: EventFilter, **options: str) -> DataFrame:
    """Return the matching events, in the columns that ``filter_events`` takes, without invalid lines.

    Args:
        spark: the session.
        paths: as for ``spark.read.format("balog")``: files, folders, globs, URLs of stores and topics.
        selection: the filter.
        options: the reader's.

    Raises:
        ConfigError: Spark can't evaluate the condition.
    """
    where = selection.where.to_spark() if selection.where is not None else "id IS NOT NULL"
    schema = _COLUMNS + (", payload variant" if "payload" in where else "")
    reader = spark.read.format("balog").schema(schema).options(**options, paths=json.dumps(list(paths)))
    return reader.load().where("`schema` IS NOT NULL").where(where).select(*_TAKEN)


def filter_events(events: DataFrame, selection: EventFilter, sink: SinkConfig) -> Filtered:
    """Write a filter's events to a sink, from Spark's workers.

    If a worker dies, another one starts its partition again. In an archive its files replace the earlier ones. A sink
    that knows ids, as most topics do, ignores the repeated events; other sinks get them again with the same ids.

    Args:
        events: with the columns of ``read_events``.
        selection: the filter.
        sink: where to write.

    Raises:
        BalogError: the sink rejects events after all tries.
    """
    rows = events.mapInArrow(partial(_write, selection=selection, config=sink, job=new_id()), _COUNTS).collect()
    wanted, written, refused = (sum(row[name] for row in rows) for name in ("wanted", "written", "refused"))
    return Filtered(wanted, written, refused, next((row.reason for row in rows if row.reason), ""))


def _write(
    batches: Iterator[pa.RecordBatch], selection: EventFilter, config: SinkConfig, job: str
) -> Iterator[pa.RecordBatch]:
    """Write one partition, in a worker."""
    from pyspark import TaskContext

    events = (selection.make(event_from_row(row)) for batch in batches for row in batch.to_pylist())
    if isinstance(config, StoreSinkConfig):
        context = TaskContext.get()
        with TemporaryDirectory(prefix="balog-filter-") as folder:
            aside = msgspec.structs.replace(config, path=folder, url=None, options={}, staging=None)
            counts = _pour(events, aside)
            name = f"{job}-{context.partitionId() if context else 0:05}"
            files = [
                file.rename(file.with_name(f"{name}-{number:05}.{file.name.partition('.')[2]}"))
                for number, file in enumerate(sorted(Path(folder).glob("*/date=*/[!.]*")))
            ]
            _with_retries(lambda: _publish(files, config), config)
    else:
        counts = _pour(events, config)
    yield pa.RecordBatch.from_pylist([msgspec.structs.asdict(counts)], _ARROW)


def _publish(files: Sequence[Path], config: StoreSinkConfig) -> None:
    """Put the files of a partition into the archive, and replace those of an earlier attempt.

    Raises:
        SinkError: the archive rejects a file; the others are complete.
    """
    location = config.path or config.url or ""
    storage = open_storage(f"{location.rstrip('/')}/{config.topic}", config.options)
    try:
        for file in files:
            manifest = describe(file)
            storage.upload(file, f"{file.parent.name}/{file.name}")
            storage.upload(manifest, f"{MANIFESTS}/{manifest.name}")
    except StorageError as error:
        raise SinkError(str(error), retryable=error.retryable) from None
    finally:
        storage.close()


def _pour(events: Iterator[Event], config: SinkConfig) -> Filtered:
    """Write events to a sink."""
    sink: Sink | None = None
    counts = Filtered()
    try:
        while some := list(islice(events, _BATCH)):
            if sink is None:
                sink = config.build()
                _with_retries(sink.open, config)
            counts.deliver(sink, config, [Delivery(event, encode(event)) for event in some])
    finally:
        if sink is not None:
            sink.close()
    return counts


def _with_retries(do: Callable[[], object], config: SinkConfig) -> None:
    """Call a function until it succeeds, up to the limit of tries."""
    backoff = config.retry.backoff()
    for failures in range(1, _TRIES + 1):
        try:
            do()
        except SinkError as error:
            if not error.retryable or failures == _TRIES:
                raise BalogError(f"{config.name}: {reason_of(error)}") from None
            time.sleep(backoff.delay(failures, error.retry_after))
        else:
            return
