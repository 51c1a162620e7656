"""The Python Data Source that Spark knows as ``balog``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from balog.analytics.reading.files import Slice
from balog.analytics.reading.inputs import Inputs, read_inputs
from balog.analytics.reading.projection import project
from balog.analytics.reading.pushing import Condition, is_of_type, push
from balog.analytics.reading.registry_types import typed_events
from balog.analytics.reading.schemas import DEFAULT
from balog.analytics.reading.streaming import Limits, Offset, Stream
from balog.analytics.rollups.schemas import ROLLUP
from balog.analytics.rollups.worker import RollupQuery
from balog.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from balog.analytics.reading.scan import Query

__all__ = ["EventReader", "EventSource", "EventStreamReader"]


class EventSource(DataSource):
    """Events out of files, in any of ``balog.analytics.reading.forms``.

    Options: those of ``balog.analytics.reading.inputs.read_inputs`` say what is read; ``rollup`` true gives small rows
    that can be merged instead of events (see ``balog.analytics.rollups.schemas``).

    ``cls_type`` gives the events of that payload type alone, with the payload as a struct typed by the type's JSON
    Schema: the newest of the registry, or what the option ``schemas`` names (see
    ``balog.analytics.reading.registry_types``). A schema given to the reader goes before it. Lines that are no events
    are of no type and are left out.

    Filters on ``timestamp``, ``channel``, ``level`` and ``cls_type`` are asked while lines are parsed (see
    ``balog.analytics.reading.pushing``). ``pushdown`` false leaves them all to Spark.
    """

    @classmethod
    def name(cls) -> str:
        """Give the name for ``spark.read.format``."""
        return "balog"

    def schema(self) -> StructType:
        """Give all columns of an event, or a rollup's.

        Raises:
            ConfigError: there is no schema of the ``cls_type``, or it can't be read.
        """
        if self._rolled:
            return ROLLUP
        return typed_events(self._cls_type, self.options.get("schemas")) if self._cls_type else DEFAULT

    def reader(self, schema: StructType) -> EventReader:
        """Give the reader of a batch; the schema is the projection."""
        if self._rolled and schema != ROLLUP:
            raise ConfigError(
                "a rollup has its own schema; leave .schema(...) out", "format('balog') with option rollup"
            )
        where = (is_of_type(self._cls_type),) if self._cls_type else ()
        if self._rolled and where:
            raise ConfigError("a rollup is of all types; leave cls_type out", "format('balog') with option rollup")
        if not self._rolled:
            project(schema, where)
        takes_filters = not self._rolled and str(self.options.get("pushdown", "")).lower() != "false"
        kind = FilteringReader if takes_filters else EventReader
        return kind(read_inputs(self.options), None if self._rolled else schema, where)

    def streamReader(self, schema: StructType) -> EventStreamReader:
        """Give the reader of a stream of what comes to files and topics."""
        return EventStreamReader(self.reader(schema), Limits.read(self.options), self.options.get("state", ""))

    @property
    def _cls_type(self) -> str:
        return self.options.get("cls_type", "")

    @property
    def _rolled(self) -> bool:
        return str(self.options.get("rollup", "")).lower() == "true"


class _Task(InputPartition):
    def __init__(self, slices: Sequence[Slice]) -> None:
        super().__init__([tuple(piece) for piece in slices])


class EventReader(DataSourceReader):
    """Reads slices of files; Spark carries it to its workers."""

    def __init__(self, inputs: Inputs, schema: StructType | None, where: tuple[Condition, ...] = ()) -> None:
        self.inputs, self._schema, self._where = inputs, schema, where

    def partitions(self) -> Sequence[InputPartition]:
        """Share the files out; none at all gives one task of nothing."""
        return [_Task(slices) for slices in self.inputs.tasks()] or [_Task([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the Arrow batches of one task."""
        return self.scan(partition)

    def scan(self, partition: InputPartition, *, is_growth: bool = False) -> Iterator[pa.RecordBatch]:
        """Give the same, also where slices are what was added to files."""
        from balog.analytics.reading.scan import EventQuery, scan

        query: Query = RollupQuery() if self._schema is None else EventQuery(project(self._schema, self._where))
        return scan(
            [Slice(*piece) for piece in partition.value], query, self.inputs.places, self.inputs.forms, is_growth
        )


class FilteringReader(EventReader):
    """Reads what filters leave over.

    Spark refuses a reader that takes filters where ``spark.sql.python.filterPushdown.enabled`` is false, which it is
    by default; ``balog.analytics.register`` sets it.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that the parser can ask, and give the others back."""
        pushed = push(filters, self._schema.fieldNames() if self._schema else ())
        self._where += pushed.where
        self.inputs = self.inputs.narrow(pushed.since, pushed.until)
        return pushed.left


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes to growing files and topics; see ``balog.analytics.reading.streaming``.

    Args:
        state: see ``Stream``; nothing is opened before it is needed, as Spark carries this to its workers too.
    """

    def __init__(self, reader: EventReader, limits: Limits, state: str) -> None:
        self._reader, self._limits, self._state = reader, limits, state
        self._stream: Stream | None = None

    @property
    def _now(self) -> Stream:
        if self._stream is None:
            self._stream = Stream(self._reader.inputs, self._state)
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

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Look what has come."""
        limits = Limits() if isinstance(limit, ReadAllAvailable) else self._limits
        return self._now.latest(Offset.read(start), limits).write()

    def prepareForTriggerAvailableNow(self) -> None:
        """Let what is there now be all there is."""
        self._now.freeze()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Share out what lies between two offsets."""
        tasks = self._now.batch(Offset.read(start), Offset.read(end))
        return [_Task(slices) for slices in tasks] or [_Task([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the Arrow batches of one task."""
        return self._reader.scan(partition, is_growth=True)

    def commit(self, end: dict[str, Any]) -> None:
        """Note that all up to this offset is done with."""
        self._now.commit(Offset.read(end))
