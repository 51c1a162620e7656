"""The transmitter: sources into tables, batch by batch, each event once."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

from balog.analytics.reading.inputs import read_inputs
from balog.analytics.source import EventReader, EventSource
from balog.analytics.tables.builder import BuiltBatch, build, in_workers
from balog.analytics.tables.listing import BATCH_BYTES, Listing, SourceBatch, list_sources
from balog.analytics.tables.positions import position_of
from balog.analytics.tables.staging import READ, BatchStage
from balog.analytics.tables.store import RowError, TableBatch, TableStore
from balog.analytics.tables.verification import VerifySample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from balog.analytics.reading.files import SourceFile

__all__ = ["LoadOptions", "LoadSummary", "listed", "load", "reader_of", "stage_of"]


@dataclass(frozen=True)
class LoadOptions:
    """How to load.

    Attributes:
        since, until: only events of that time, ``until`` not included. Their files are read again by a load of more.
        reader: options of the data source, such as ``form``.
        batch_bytes: about so many bytes of events, decompressed, are one commit.
        progress: a folder in which workers count events, see ``balog.analytics.progress``; "" for nobody.
        found: the files that the sources mean, where somebody has listed them; else they are listed.
        sample: which typed rows are compared with their payloads before a commit.
    """

    since: datetime | None = None
    until: datetime | None = None
    reader: Mapping[str, str] = field(default_factory=dict)
    batch_bytes: int = BATCH_BYTES
    progress: str = ""
    found: tuple[SourceFile, ...] | None = None
    sample: VerifySample = field(default_factory=VerifySample)


@dataclass
class LoadSummary:
    """What a load did.

    Attributes:
        rows: added to each table.
        duplicates, too_old, ahead: see ``builder.BuiltBatch``.
        lines: how tables grew.
        files, known: files that were read, and those that were loaded before and passed over.
        seconds: how long it took.
    """

    rows: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    too_old: int = 0
    ahead: int = 0
    lines: list[str] = field(default_factory=list)
    files: int = 0
    known: int = 0
    seconds: float = 0.0

    def add(self, built: BuiltBatch) -> None:
        """Count a batch that was committed."""
        self.rows.update({table: part.rows for table, part in built.parts.items()})
        self.duplicates += built.duplicates
        self.too_old += built.too_old
        self.ahead += built.ahead
        self.lines += built.lines


def load(
    spark: SparkSession,
    store: TableStore,
    paths: Sequence[str],
    options: LoadOptions | None = None,
    say: Callable[[str], None] = lambda words: None,
) -> LoadSummary:
    """Load what is new in sources; the caller holds ``store.writing()``.

    Args:
        paths: see ``listing.list_sources``.
        say: told what is going on.

    Raises:
        ConfigError: a path that does not exist or may not be listed.
        TableError: the tables could not be written; batches before that are there.
        RowError: an event can't be made a row, or its row is not what its payload says; as before.
    """
    options = options or LoadOptions()
    began = time.monotonic()
    summary = LoadSummary()
    listing = listed(store, paths, options)
    summary.files, summary.known = listing.files, listing.known
    for number, share in enumerate(listing.shares, 1):
        here = f"batch {number} of {len(listing.shares)}"
        summary.add(_load_one(spark, store, share, options, lambda words, here=here: say(f"{words}, {here}")))  # type: ignore[misc]
    summary.seconds = time.monotonic() - began
    return summary


def listed(store: TableStore, paths: Sequence[str], options: LoadOptions) -> Listing:
    """Give what of the sources is to be loaded."""
    asked = {name: moment.isoformat() for name, moment in _ends(options) if moment is not None}
    inputs = read_inputs({**options.reader, **asked, "paths": json.dumps(list(paths))})
    return list_sources(inputs._replace(listed=options.found), store.loaded(), options.batch_bytes)


def _ends(options: LoadOptions) -> list[tuple[str, datetime | None]]:
    return [("since", options.since), ("until", options.until)]


def _load_one(
    spark: SparkSession, store: TableStore, share: SourceBatch, options: LoadOptions, say: Callable[[str], None]
) -> BuiltBatch:
    stage = stage_of(store, store.staging(share.id), share.id, options)
    say(f"Reading {len(share.paths):,} files")
    reader = reader_of(share, options)
    tasks = list(reader.partitions())
    staged = list(in_workers(spark, len(tasks), lambda number: stage.run(reader.read(tasks[number]))))
    try:
        built = build(spark, store, stage, staged, say)
    except RowError as error:
        raise error.at(position_of(error.event, reader.inputs)) from None
    say("Committing")
    # A load of some time has not seen all of its files: they are read again when more is asked for.
    sources = {} if options.since or options.until else share.sources
    store.commit(TableBatch(share.id, built.parts, sources))
    return built


def reader_of(share: SourceBatch, options: LoadOptions) -> EventReader:
    """Give what reads a batch, in the workers without Spark in between."""
    files = [[path, *source] for path, source in share.sources.items()]  # a topic has none
    what = {"files": json.dumps(files)} if files else {"paths": json.dumps(share.paths)}
    return EventSource({**options.reader, **what, "progress": options.progress}).reader(READ)


def stage_of(store: TableStore, folder: str, batch: str, options: LoadOptions) -> BatchStage:
    """Give what writes a batch's events into a folder."""
    floor: date | None = store.loaded().floor
    schemas = {name: schema.json() for name in store.names() if (schema := store.schema(name)) is not None}
    now = datetime.now(timezone.utc)
    return BatchStage(folder, batch, now, floor, options.since, options.until, schemas, options.sample)
