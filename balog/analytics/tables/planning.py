"""What a load would do, before it does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import types as t

from balog.analytics.tables.building import grow
from balog.analytics.tables.loading import Options, listed
from balog.analytics.tables.shapes import infer
from balog.analytics.tables.staging import READ, first_schema
from balog.analytics.tables.store import Store, table_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Planned", "plan"]


class Planned(NamedTuple):
    """What would be read, in how many commits, and how tables would grow: a line for each thing that would change."""

    files: int
    bytes: int
    known: int
    batches: int
    lines: list[str]


def plan(
    spark: SparkSession,
    store: Store,
    paths: Sequence[str],
    options: Options,
    say: Callable[[str], None] = lambda words: None,
) -> Planned:
    """Read what is new in sources, and write nothing.

    Raises:
        ConfigError: a path that does not exist or may not be listed.
    """
    listing = listed(store, paths, options)
    new = [path for share in listing.shares for path in share.paths]
    if not new:
        return Planned(0, 0, listing.known, 0, [])
    say(f"Reading {len(new):,} files")
    asked = t.StructType([READ[name] for name in ("timestamp", "cls_type", "payload_json")])
    reader = spark.read.format("balog").schema(asked).options(**options.reader)
    events = reader.option("paths", json.dumps(new)).load()
    if options.since is not None:
        events = events.where(events["timestamp"] >= options.since)
    if options.until is not None:
        events = events.where(events["timestamp"] < options.until)
    types = [row.cls_type for row in events.select("cls_type").distinct().collect() if row.cls_type is not None]
    have = {name: schema for name in types if (schema := store.schema(table_name(name)) or first_schema(name))}
    _, lines = grow(store, infer(events, have))
    return Planned(listing.files, listing.bytes, listing.known, len(listing.shares), lines)
