"""Previews a load: what it would read, and how tables would change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from balog.analytics.tables.builder import gather, grow, in_workers
from balog.analytics.tables.loader import LoadOptions, listed, reader_of, stage_of
from balog.analytics.tables.staging import UNSEEN
from balog.analytics.tables.store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LoadPreview(NamedTuple):
    """What a load would read, in how many commits, and a message for each change of a table.

    ``events`` includes duplicates; ``bad`` is the number of invalid lines.
    """

    files: int
    bytes: int
    known: int
    batches: int
    events: int
    bad: int
    lines: list[str]


def plan(
    spark: SparkSession,
    store: TableStore,
    paths: Sequence[str],
    options: LoadOptions,
    notify: Callable[[str], None] = lambda words: None,
) -> LoadPreview:
    """Read what is new in sources without writing.

    Raises:
        ConfigError: a path does not exist or can't be listed.
    """
    listing = listed(store, paths, options)
    tasks = [
        (reader, task)
        for share in listing.shares
        for reader in [reader_of(share, options)]
        for task in reader.partitions()
    ]
    if not tasks:
        return LoadPreview(0, 0, listing.known, 0, 0, 0, [])
    notify(f"Reading {listing.files:,} files")
    stage = stage_of(store, "", "plan", options)
    found = in_workers(spark, len(tasks), lambda number: stage.preview(tasks[number][0].read(tasks[number][1])))
    counts, seen = gather(found)
    _, lines = grow(store, seen, sum(file.rows for file in counts[UNSEEN]))
    events, bad = (sum(file.rows for file in counts[name]) for name in ("events", "quarantine"))
    return LoadPreview(listing.files, listing.bytes, listing.known, len(listing.shares), events, bad, lines)
