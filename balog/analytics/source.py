"""The Python Data Source that Spark knows as ``balog``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from balog.analytics.reading.files import Slice
from balog.analytics.reading.inputs import Inputs, read_inputs
from balog.analytics.reading.projection import project
from balog.analytics.reading.schemas import DEFAULT
from balog.analytics.rollups.schemas import ROLLUP
from balog.analytics.rollups.worker import RollupQuery
from balog.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from balog.analytics.reading.scan import Query

__all__ = ["EventReader", "EventSource"]


class EventSource(DataSource):
    """Events out of files, in any of ``balog.analytics.reading.forms``.

    Options: those of ``balog.analytics.reading.inputs.read_inputs`` say what is read; ``rollup`` true gives small rows
    that can be merged instead of events (see ``balog.analytics.rollups.schemas``).
    """

    @classmethod
    def name(cls) -> str:
        """Give the name for ``spark.read.format``."""
        return "balog"

    def schema(self) -> StructType:
        """Give all columns of an event, or a rollup's."""
        return ROLLUP if self._rolled else DEFAULT

    def reader(self, schema: StructType) -> EventReader:
        """Give the reader of a batch; the schema is the projection."""
        if self._rolled and schema != ROLLUP:
            raise ConfigError(
                "a rollup has its own schema; leave .schema(...) out", "format('balog') with option rollup"
            )
        if not self._rolled:
            project(schema)
        return EventReader(read_inputs(self.options), None if self._rolled else schema)

    @property
    def _rolled(self) -> bool:
        return str(self.options.get("rollup", "")).lower() == "true"


class _Task(InputPartition):
    def __init__(self, slices: Sequence[Slice]) -> None:
        super().__init__([tuple(piece) for piece in slices])


class EventReader(DataSourceReader):
    """Reads slices of files; Spark carries it to its workers."""

    def __init__(self, inputs: Inputs, schema: StructType | None) -> None:
        self._inputs, self._schema = inputs, schema

    def partitions(self) -> Sequence[InputPartition]:
        """Share the files out; none at all gives one task of nothing."""
        return [_Task(slices) for slices in self._inputs.tasks()] or [_Task([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the Arrow batches of one task."""
        from balog.analytics.reading.scan import EventQuery, scan

        query: Query = RollupQuery() if self._schema is None else EventQuery(project(self._schema))
        return scan([Slice(*piece) for piece in partition.value], query, self._inputs.places, self._inputs.forms)
