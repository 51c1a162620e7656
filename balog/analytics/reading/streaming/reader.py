"""The streaming reader of the data source ``balog``, for Spark 4.2 and newer.

Older versions do not pass the start of a batch to the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from balog.analytics.reading.inputs import Inputs
from balog.analytics.reading.streaming.planner import Offset, StreamPlanner
from balog.analytics.reading.tasks import partitions
from balog.analytics.reading.worker_errors import OneLineErrors


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads growing files and topics; see ``balog.analytics.reading.streaming.planner``.

    Args:
        inputs: what to read.
        scan: returns the Arrow batches of one task, whose slices were added to files.
        most_bytes: of a batch, see ``StreamPlanner.latest``.
        state: see ``StreamPlanner``. Spark sends the reader to its workers too, so nothing is opened until it is
            needed.
    """

    def __init__(
        self,
        inputs: Inputs,
        scan: Callable[[InputPartition], Iterator[pa.RecordBatch]],
        most_bytes: int | None,
        state: str,
    ) -> None:
        self._inputs, self._scan, self._most_bytes, self._state = inputs, scan, most_bytes, state
        self._stream: StreamPlanner | None = None

    @property
    def _now(self) -> StreamPlanner:
        if self._stream is None:
            self._stream = StreamPlanner(self._inputs, self._state)
        return self._stream

    def initialOffset(self) -> dict[str, Any]:
        """Start before the first line of every file, and at the oldest message of every topic."""
        return Offset().write()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the configured limit."""
        return ReadAllAvailable() if self._most_bytes is None else ReadMaxBytes(self._most_bytes)

    @OneLineErrors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch."""
        most_bytes = None if isinstance(limit, ReadAllAvailable) else self._most_bytes
        return self._now.latest(Offset.read(start), most_bytes).write()

    @OneLineErrors()
    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at what exists now."""
        self._now.freeze()

    @OneLineErrors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the tasks between two offsets."""
        return partitions(self._now.batch(Offset.read(start), Offset.read(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the Arrow batches of one task."""
        with OneLineErrors():
            yield from self._scan(partition)

    @OneLineErrors()
    def commit(self, end: dict[str, Any]) -> None:
        """Mark everything up to this offset as read."""
        self._now.commit(Offset.read(end))
