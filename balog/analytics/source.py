"""The Python Data Source that Spark knows as ``balog``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from balog.analytics.reading.files import Slice, find, plan
from balog.analytics.reading.projection import project
from balog.analytics.reading.schemas import DEFAULT, ROLLUP
from balog.analytics.rollups.rollup import RollupQuery
from balog.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from balog.analytics.reading.scan import Query

__all__ = ["EventReader", "EventSource"]


class EventSource(DataSource):
    """Events out of files of JSON lines.

    Options: ``path`` (see ``balog.analytics.reading.files.find``); ``rollup`` true gives small rows that can be merged
    instead of events (see ``balog.analytics.rollups.rollup``); ``parallel``, how many workers to plan for, by default
    the machine's cores.
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
        return EventReader(self._paths(), None if self._rolled else schema, self._parallel())

    @property
    def _rolled(self) -> bool:
        return str(self.options.get("rollup", "")).lower() == "true"

    def _parallel(self) -> int:
        text = self.options.get("parallel", "")
        if text and not (text.isdecimal() and int(text)):
            raise ConfigError(f"option parallel is {text!r}; give a number of workers", "format('balog')")
        return int(text) if text else os.cpu_count() or 1

    def _paths(self) -> list[str]:
        if several := self.options.get("paths"):
            return [str(path) for path in json.loads(several)]
        if path := self.options.get("path"):
            return [path]
        raise ConfigError("no path; use .load(path)", "format('balog')")


class _Task(InputPartition):
    def __init__(self, slices: Sequence[Slice]) -> None:
        super().__init__([tuple(piece) for piece in slices])


class EventReader(DataSourceReader):
    """Reads slices of files; Spark carries it to its workers."""

    def __init__(self, paths: list[str], schema: StructType | None, parallel: int) -> None:
        self._paths, self._schema, self._parallel = paths, schema, parallel

    def partitions(self) -> Sequence[InputPartition]:
        """Share the files out; none at all gives one task of nothing."""
        tasks = plan(find(self._paths), self._parallel)
        return [_Task(slices) for slices in tasks] or [_Task([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the Arrow batches of one task."""
        from balog.analytics.reading.scan import EventQuery, scan

        query: Query = RollupQuery() if self._schema is None else EventQuery(project(self._schema))
        return scan([Slice(*piece) for piece in partition.value], query)
