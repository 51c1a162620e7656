"""In the workers: what payloads look like, as far as the tables of their types have no column for it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from balog.analytics.tables.evolution import merge
from balog.analytics.tables.shapes import Watcher, from_registry
from balog.analytics.tables.store import table_name

__all__ = ["Shapes", "first_schema"]

_MOST_TYPES = 1000  # that one worker looks at; whoever makes up more has them in ``events`` only


class Shapes:
    """Watches the payloads of each type.

    Args:
        schemas: what the tables have, by name, as Spark's JSON.
    """

    def __init__(self, schemas: Mapping[str, str]) -> None:
        self._schemas = schemas
        self._watchers: dict[str, Watcher] = {}

    def look(self, events: pa.Table) -> None:
        """Look at events with ``cls_type`` and ``payload_json``."""
        types = events.column("cls_type")
        for name in pc.unique(types).to_pylist():
            if name is None or (name not in self._watchers and len(self._watchers) >= _MOST_TYPES):
                continue
            if name not in self._watchers:
                known = self._schemas.get(table_name(name))
                schema = t.StructType.fromJson(json.loads(known)) if known else first_schema(name)
                self._watchers[name] = Watcher(name, schema)
            texts = events.column("payload_json").filter(pc.equal(types, name))
            self._watchers[name].look(texts.cast(pa.binary()).to_pylist())

    def seen(self) -> list[tuple[str, bytes]]:
        """Give each type's ``shapes.Shape`` as JSON."""
        return [(name, msgspec.json.encode(watcher.seen)) for name, watcher in self._watchers.items()]


def first_schema(cls_type: str) -> t.StructType | None:
    """Give the columns that a payload type's table begins with, where the registry knows the type."""
    registered = from_registry(cls_type)
    return None if registered is None else merge(None, registered).schema
