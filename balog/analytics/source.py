"""The Python data source ``balog`` for Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from balog.analytics.reading.inputs import Inputs, check_options, read_inputs, read_number
from balog.analytics.reading.registry_types import typed_events
from balog.analytics.reading.scan import EventQuery, Query, scan
from balog.analytics.reading.spark_types import DEFAULT, project_spark
from balog.analytics.reading.streaming.planner import check_streaming
from balog.analytics.reading.tasks import Slice, partitions
from balog.analytics.reading.worker_errors import OneLineErrors
from balog.analytics.rollups.frames import ROLLUP
from balog.analytics.rollups.worker import RollupQuery
from balog.common.errors import ConfigError

if TYPE_CHECKING:
    from balog.analytics.reading.streaming.reader import EventStreamReader


class EventSource(DataSource):
    """Events from files, in any of ``balog.analytics.reading.forms``, and from topics.

    The options of ``balog.analytics.reading.inputs.read_inputs`` select the inputs. With ``rollup``, the source returns
    small mergeable rows instead of events (see ``balog.analytics.rollups.schemas``). Every line is counted;
    ``rollups.from_files`` counts each id once.

    ``cls_type`` selects the events of one payload type. Their payload is a struct typed by the type's JSON Schema: the
    newest in the registry, or the one that the option ``schemas`` names (see
    ``balog.analytics.reading.registry_types``). A schema of the reader has priority. Invalid lines have no type and are
    skipped.

    The source accepts no filters from Spark, which applies all of them itself: Spark 4.1 to 4.3 use one reader for all
    queries on a frame, so the filter of one query would also apply to the next.
    """

    @OneLineErrors()
    def __init__(self, options: dict[str, str]) -> None:
        """Check the options' names.

        Raises:
            ConfigError: an option is unknown; the message names a similar one.
        """
        super().__init__(options)
        check_options(options)

    @classmethod
    def name(cls) -> str:
        """Return the name for ``spark.read.format``."""
        return "balog"

    @OneLineErrors()
    def schema(self) -> StructType:
        """Return all columns of an event, or of a rollup.

        Raises:
            ConfigError: the ``cls_type`` has no schema, or it can't be read.
        """
        if self._rolled:
            return ROLLUP
        return typed_events(self._cls_type, self.options.get("schemas")) if self._cls_type else DEFAULT

    @OneLineErrors()
    def reader(self, schema: StructType) -> EventReader:
        """Return the reader of a batch; the schema is the projection."""
        if not self._rolled:
            project_spark(schema, self._cls_type)
            return EventReader(read_inputs(self.options), schema, self._cls_type)
        source = "format('balog') with option rollup"
        if schema != ROLLUP:
            raise ConfigError("a rollup has its own schema; leave .schema(...) out", source)
        if self._cls_type:
            raise ConfigError("a rollup is of all types; leave cls_type out", source)
        return EventReader(read_inputs(self.options), None)

    @OneLineErrors()
    def streamReader(self, schema: StructType) -> EventStreamReader:
        """Return the reader of a stream of growing files and topics.

        Raises:
            ConfigError: Spark is older than 4.2, or an option is not valid.
        """
        check_streaming()
        from balog.analytics.reading.streaming.reader import EventStreamReader

        reader = self.reader(schema)
        scan = partial(reader.scan, is_growth=True)
        most_bytes = read_number(self.options, "maxBytesPerTrigger", 0) or None
        return EventStreamReader(reader.inputs, scan, most_bytes, self.options.get("state", ""))

    @property
    def _cls_type(self) -> str:
        return self.options.get("cls_type", "")

    @property
    def _rolled(self) -> bool:
        return bool(self.options.get("rollup"))


class EventReader(DataSourceReader):
    """Reads slices of files; Spark sends it to its workers."""

    def __init__(self, inputs: Inputs, schema: StructType | None, cls_type: str = "") -> None:
        self.inputs, self._schema, self._cls_type = inputs, schema, cls_type

    @OneLineErrors()
    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; without inputs there is one empty task."""
        return partitions(self.inputs.tasks())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the Arrow batches of one task."""
        with OneLineErrors():
            yield from self.scan(partition)

    def scan(self, partition: InputPartition, *, is_growth: bool = False) -> Iterator[pa.RecordBatch]:
        """Return the Arrow batches of one task; with ``is_growth``, slices were added to files."""
        query: Query
        if self._schema is None:
            query = RollupQuery(with_ids=True)
        else:
            query = EventQuery(project_spark(self._schema, self._cls_type))
        slices = [Slice(*piece) for piece in partition.value]
        return scan(slices, query, self.inputs.storages, self.inputs.form, is_growth)
