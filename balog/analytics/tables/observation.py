"""Observes the shapes of payloads in workers: the fields for which their tables have no column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from balog.analytics.tables.evolution import merge
from balog.analytics.tables.log import read_columns
from balog.analytics.tables.shapes import PayloadShape, ShapeObserver, from_registry
from balog.analytics.tables.store import table_name

_MOST_TYPES = 1000  # types that one worker observes, those with the most events
_MOST_COUNTED = 20_000  # types that one worker counts


class Shapes:
    """Observes the payloads of each type.

    Args:
        schemas: the tables' columns, by name, as Spark's JSON.

    Attributes:
        unseen: the number of events of further types.
    """

    def __init__(self, schemas: Mapping[str, str]) -> None:
        self._schemas = schemas
        self._watchers: dict[str, ShapeObserver] = {}
        self._rows: Counter[str] = Counter()
        self._least = 0  # types with at most this number of events are not observed when the limit is reached
        self.unseen = 0

    def observe(self, events: pa.Table) -> None:
        """Observe events with ``cls_type`` and ``payload_json``."""
        types = events.column("cls_type")
        counted = {one["values"]: one["counts"] for one in pc.value_counts(types).to_pylist()}
        for name, rows in counted.items():
            if name is None:
                continue
            if name not in self._rows and len(self._rows) >= _MOST_COUNTED:
                self.unseen += rows
                continue
            self._rows[name] += rows
            if name in self._watchers or self._has_room(name):
                self._watch(name, events.column("payload_json").filter(pc.equal(types, name)))

    def _has_room(self, name: str) -> bool:
        """Return whether a type can be observed; it may replace one with fewer events."""
        if len(self._watchers) < _MOST_TYPES:
            return True
        if self._rows[name] <= self._least:
            return False
        smallest = min(self._watchers, key=self._rows.__getitem__)
        self._least = self._rows[smallest]
        if self._rows[name] <= self._least:
            return False
        del self._watchers[smallest]  # if it gets a table nevertheless, that keeps its fields as JSON
        return True

    def _watch(self, name: str, texts: pa.ChunkedArray) -> None:
        if name not in self._watchers:
            known = self._schemas.get(table_name(name))
            schema = read_columns(known) if known else first_schema(name)
            self._watchers[name] = ShapeObserver(name, schema)
        self._watchers[name].observe(texts.cast(pa.binary()).to_pylist())

    def seen(self) -> list[tuple[str, int, bytes]]:
        """Return the number of events and the ``shapes.PayloadShape``, as JSON, of each type."""
        watchers = ((name, self._watchers.get(name)) for name in self._rows)
        return [
            (name, self._rows[name], msgspec.json.encode(PayloadShape() if watcher is None else watcher.seen))
            for name, watcher in watchers
        ]


def first_schema(cls_type: str) -> t.StructType | None:
    """Return the first columns of a payload type's table, or None if the registry does not know the type."""
    registered = from_registry(cls_type)
    return None if registered is None else merge(None, registered).schema
