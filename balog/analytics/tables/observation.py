"""In the workers: what payloads look like, as far as the tables of their types have no column for it."""

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

__all__ = ["Shapes", "first_schema"]

_MOST_TYPES = 1000  # that one worker looks at, those with the most events
_MOST_COUNTED = 20_000  # that one worker counts


class Shapes:
    """Watches the payloads of each type.

    Args:
        schemas: what the tables have, by name, as Spark's JSON.

    Attributes:
        unseen: events of types beyond those that can be counted.
    """

    def __init__(self, schemas: Mapping[str, str]) -> None:
        self._schemas = schemas
        self._watchers: dict[str, ShapeObserver] = {}
        self._rows: Counter[str] = Counter()
        self._least = 0  # a type with as many events or fewer is not watched while there is no room
        self.unseen = 0

    def look(self, events: pa.Table) -> None:
        """Look at events with ``cls_type`` and ``payload_json``."""
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
        """Make room for a type that has more events than one of those that are watched."""
        if len(self._watchers) < _MOST_TYPES:
            return True
        if self._rows[name] <= self._least:
            return False
        smallest = min(self._watchers, key=self._rows.__getitem__)
        self._least = self._rows[smallest]
        if self._rows[name] <= self._least:
            return False
        del self._watchers[smallest]  # should it get a table all the same, that keeps its fields as JSON
        return True

    def _watch(self, name: str, texts: pa.ChunkedArray) -> None:
        if name not in self._watchers:
            known = self._schemas.get(table_name(name))
            schema = read_columns(known) if known else first_schema(name)
            self._watchers[name] = ShapeObserver(name, schema)
        self._watchers[name].look(texts.cast(pa.binary()).to_pylist())

    def seen(self) -> list[tuple[str, int, bytes]]:
        """Give each type's events and its ``shapes.PayloadShape`` as JSON."""
        watchers = ((name, self._watchers.get(name)) for name in self._rows)
        return [
            (name, self._rows[name], msgspec.json.encode(PayloadShape() if watcher is None else watcher.seen))
            for name, watcher in watchers
        ]


def first_schema(cls_type: str) -> t.StructType | None:
    """Give the columns that a payload type's table begins with, where the registry knows the type."""
    registered = from_registry(cls_type)
    return None if registered is None else merge(None, registered).schema
