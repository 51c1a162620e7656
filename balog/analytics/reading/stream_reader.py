"""The streaming reader of the Data Source ``balog``; it needs Spark 4.2, whose reader is told where a batch begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from balog.analytics.reading.inputs import Inputs
from balog.analytics.reading.partitions import partitions
from balog.analytics.reading.streaming import EventStream, Offset, StreamLimits
from balog.analytics.reading.worker_errors import OneLineErrors

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EventStreamReader"]


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes to growing files and topics; see ``balog.analytics.reading.streaming``.

    Args:
        scan: gives the Arrow batches of one task, whose slices are what was added to files.
        state: see ``EventStream``; nothing is opened before it is needed, as Spark carries this to its workers too.
    """

    def __init__(
        self,
        inputs: Inputs,
        scan: Callable[[InputPartition], Iterator[pa.RecordBatch]],
        limits: StreamLimits,
        state: str,
    ) -> None:
        self._inputs, self._scan, self._limits, self._state = inputs, scan, limits, state
        self._stream: EventStream | None = None

    @property
    def _now(self) -> EventStream:
        if self._stream is None:
            self._stream = EventStream(self._inputs, self._state)
        return self._stream

    def initialOffset(self) -> dict[str, Any]:
        """Begin before the first line of every file, and at the oldest message of every topic."""
        return Offset().write()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Give one of the limits that were asked for; ``latestOffset`` keeps to them all."""
        if self._limits.files is not None:
            return ReadMaxFiles(self._limits.files)
        if self._limits.bytes is not None:
            return ReadMaxBytes(self._limits.bytes)
        return ReadAllAvailable() if self._limits.messages is None else ReadMaxRows(self._limits.messages)

    @OneLineErrors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Look what has come."""
        limits = StreamLimits() if isinstance(limit, ReadAllAvailable) else self._limits
        return self._now.latest(Offset.read(start), limits).write()

    @OneLineErrors()
    def prepareForTriggerAvailableNow(self) -> None:
        """Let what is there now be all there is."""
        self._now.freeze()

    @OneLineErrors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Share out what lies between two offsets."""
        return partitions(self._now.batch(Offset.read(start), Offset.read(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the Arrow batches of one task."""
        with OneLineErrors():
            yield from self._scan(partition)

    @OneLineErrors()
    def commit(self, end: dict[str, Any]) -> None:
        """Note that all up to this offset is done with."""
        self._now.commit(Offset.read(end))
