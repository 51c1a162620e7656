"""The Python Data Source that Spark knows as ``balog``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from balog.analytics.progress import metered
from balog.analytics.reading.inputs import Inputs, check_options, read_inputs
from balog.analytics.reading.partitions import partitions, slices
from balog.analytics.reading.projection import Condition, is_of_type, project
from balog.analytics.reading.registry_types import typed_events
from balog.analytics.reading.schemas import DEFAULT
from balog.analytics.reading.streaming import StreamLimits, check_streaming
from balog.analytics.reading.worker_errors import OneLineErrors
from balog.analytics.rollups.schemas import ROLLUP
from balog.analytics.rollups.worker import RollupQuery
from balog.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from balog.analytics.reading.scan import Query
    from balog.analytics.reading.stream_reader import EventStreamReader

__all__ = ["EventReader", "EventSource"]


class EventSource(DataSource):
    """Events out of files, in any of ``balog.analytics.reading.forms``.

    Options: those of ``balog.analytics.reading.inputs.read_inputs`` say what is read; ``rollup`` true gives small rows
    that can be merged instead of events (see ``balog.analytics.rollups.schemas``); with ``ids`` there are rows of that
    kind, too. Each line is counted: ``rollups.from_files`` counts each id once.

    ``cls_type`` gives the events of that payload type alone, with the payload as a struct typed by the type's JSON
    Schema: the newest of the registry, or what the option ``schemas`` names (see
    ``balog.analytics.reading.registry_types``). A schema given to the reader goes before it. Lines that are no events
    are of no type and are left out.

    The source takes no filters from Spark, which applies all of them itself. Spark 4.1 to 4.3 keep one reader for all
    queries on a frame, so the filter of one query would also apply to the next.
    """

    @OneLineErrors()
    def __init__(self, options: dict[str, str]) -> None:
        """Check the options' names.

        Raises:
            ConfigError: there is no such option; it names a near one.
        """
        super().__init__(options)
        check_options(options)

    @classmethod
    def name(cls) -> str:
        """Give the name for ``spark.read.format``."""
        return "balog"

    @OneLineErrors()
    def schema(self) -> StructType:
        """Give all columns of an event, or a rollup's.

        Raises:
            ConfigError: there is no schema of the ``cls_type``, or it can't be read.
        """
        if self._rolled:
            return ROLLUP
        return typed_events(self._cls_type, self.options.get("schemas")) if self._cls_type else DEFAULT

    @OneLineErrors()
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
        inputs = read_inputs(self.options)
        if self._rolled:
            return EventReader(inputs, None, with_ids=self.options["rollup"] == "ids")
        return EventReader(inputs, schema, where)

    @OneLineErrors()
    def streamReader(self, schema: StructType) -> EventStreamReader:
        """Give the reader of a stream of what comes to files and topics.

        Raises:
            ConfigError: this Spark is older than 4.2, or an option can't be understood.
        """
        check_streaming()
        from balog.analytics.reading.stream_reader import EventStreamReader

        reader = self.reader(schema)
        scan = partial(reader.scan, is_growth=True)
        return EventStreamReader(reader.inputs, scan, StreamLimits.read(self.options), self.options.get("state", ""))

    @property
    def _cls_type(self) -> str:
        return self.options.get("cls_type", "")

    @property
    def _rolled(self) -> bool:
        return str(self.options.get("rollup", "")).lower() in ("true", "ids")


class EventReader(DataSourceReader):
    """Reads slices of files; Spark carries it to its workers."""

    def __init__(
        self, inputs: Inputs, schema: StructType | None, where: tuple[Condition, ...] = (), *, with_ids: bool = False
    ) -> None:
        self.inputs, self._schema, self._where, self._with_ids = inputs, schema, where, with_ids

    @OneLineErrors()
    def partitions(self) -> Sequence[InputPartition]:
        """Share the files out; none at all gives one task of nothing."""
        return partitions(self.inputs.tasks())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the Arrow batches of one task."""
        with OneLineErrors():
            yield from self.scan(partition)

    def scan(self, partition: InputPartition, *, is_growth: bool = False) -> Iterator[pa.RecordBatch]:
        """Give the same, also where slices are what was added to files."""
        from balog.analytics.reading.scan import EventQuery, scan

        query: Query
        if self._schema is None:
            query = RollupQuery(with_ids=self._with_ids)
        else:
            query = EventQuery(project(self._schema, self._where))
        batches = scan(slices(partition), query, self.inputs.storages, self.inputs.forms, is_growth)
        return metered(batches, self.inputs.progress)
