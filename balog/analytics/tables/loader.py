"""Loads sources into tables, batch by batch, each event once; or previews a load."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from typing import NamedTuple

from pyspark.sql import SparkSession

from balog.analytics.reading.inputs import Inputs, read_inputs
from balog.analytics.reading.spark_types import TEXT_EVENT
from balog.analytics.reading.tasks import COMPRESSED, COMPRESSED_WEIGHT, SourceFile
from balog.analytics.sessions import parallelism
from balog.analytics.source import EventReader, EventSource
from balog.analytics.tables.builder import BuiltBatch, build, gather, grow, run_tasks
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.stage import BatchStage
from balog.analytics.tables.store import LoadedSource, LoadHistory, TableBatch

BATCH_BYTES = 2 * 1024**3
"""The approximate size of a batch, in decompressed bytes of events; a single file may be larger."""

_MOST_FILES = 5000  # of a batch: each has an entry in the log


class SourceBatch(NamedTuple):
    """The sources of one batch: paths for the data source, and their entries in the log."""

    id: str
    paths: list[str]
    sources: dict[str, LoadedSource]
    bytes: int


class Listing(NamedTuple):
    """New batches, and the number of unchanged files that were loaded before."""

    shares: list[SourceBatch]
    known: int

    @property
    def files(self) -> int:
        """The number of files to read."""
        return sum(len(share.paths) for share in self.shares)

    @property
    def bytes(self) -> int:
        """Their size on disk."""
        return sum(share.bytes for share in self.shares)


def list_sources(inputs: Inputs, loaded: LoadHistory, most: int = BATCH_BYTES) -> Listing:
    """Return what is new in sources, in batches. A file with the same path, size and modification time is not new.

    Args:
        inputs: the sources; each topic is a batch of its own, and is always read whole.
        loaded: the result of ``ParquetStore.loaded``.
        most: bytes of a batch.

    Raises:
        ConfigError: a path does not exist or can't be listed.
        StorageError: a store does not answer.
    """
    sources = {file.path: LoadedSource(file.size, file.modified) for file in inputs.files()}
    fresh = {path: source for path, source in sources.items() if loaded.sources.get(path) != source}
    shares = []
    for group in _groups(fresh, most):
        named = _name("load", [[path, *source] for path, source in group.items()], loaded.commits)
        shares.append(SourceBatch(named, list(group), group, sum(source.size for source in group.values())))
    shares += [SourceBatch(_name("topic", [topic], loaded.commits), [topic], {}, 0) for topic in inputs.topics]
    return Listing(shares, len(sources) - len(fresh))


def _groups(fresh: Mapping[str, LoadedSource], most: int) -> Iterator[dict[str, LoadedSource]]:
    group: dict[str, LoadedSource] = {}
    weight = 0
    for path, source in fresh.items():
        more = source.size * (COMPRESSED_WEIGHT if path.endswith(COMPRESSED) else 1)
        if group and (weight + more > most or len(group) >= _MOST_FILES):
            yield group
            group, weight = {}, 0
        group[path] = source
        weight += more
    if group:
        yield group


def _name(kind: str, what: object, commits: int) -> str:
    return f"{kind}-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]}-{commits}"


_CORE_BYTES = 128 * 1024**2
"""Bytes of a commit for each core: what starts and ends a commit does not leave cores idle for long."""


@dataclass(frozen=True)
class LoadOptions:
    """How to load.

    Attributes:
        reader: options of the data source, such as ``form``.
        batch_bytes: the approximate size of a commit, in decompressed bytes of events. By default it is 2 GiB, or more
            where the cluster has more than 16 cores: 128 MiB for each.
        found: the files of the sources, if they are listed already.
    """

    reader: Mapping[str, str] = field(default_factory=dict)
    batch_bytes: int | None = None
    found: tuple[SourceFile, ...] | None = None

    def most_bytes(self, cores: int) -> int:
        """Return the approximate size of a commit on so many cores."""
        return self.batch_bytes or max(BATCH_BYTES, cores * _CORE_BYTES)

    def planned(self, cores: int) -> LoadOptions:
        """Return the same options with tasks and commits for so many cores."""
        reader = {"parallel": str(cores), **self.reader}
        return replace(self, reader=reader, batch_bytes=self.most_bytes(cores))


@dataclass
class LoadSummary:
    """The result of a load.

    Attributes:
        rows: added to each table.
        duplicates, too_old: see ``builder.BuiltBatch``.
        lines: messages about new tables and columns.
        files, known: files that were read, and files that were skipped because they were loaded before.
        seconds: the duration.
    """

    rows: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    too_old: int = 0
    lines: list[str] = field(default_factory=list)
    files: int = 0
    known: int = 0
    seconds: float = 0.0

    def add(self, built: BuiltBatch) -> None:
        """Add a batch that was committed."""
        self.rows.update({table: part.rows for table, part in built.parts.items()})
        self.duplicates += built.duplicates
        self.too_old += built.too_old
        self.lines += built.lines


def load(
    spark: SparkSession,
    store: ParquetStore,
    paths: Sequence[str],
    options: LoadOptions | None = None,
    notify: Callable[[str], None] = lambda words: None,
) -> LoadSummary:
    """Load what is new in sources; the caller holds ``store.writing()``.

    Args:
        spark: the session.
        store: the tables.
        paths: see ``list_sources``.
        options: how to load.
        notify: called with the current step.

    Raises:
        ConfigError: a path does not exist or can't be listed.
        TableError: the tables could not be written; earlier batches are committed.
        RowError: an event can't be converted to a row, or a row differs from its payload; earlier batches are
            committed.
    """
    options = (options or LoadOptions()).planned(parallelism(spark))
    began = time.monotonic()
    listing = listed(store, paths, options)
    summary = LoadSummary(files=listing.files, known=listing.known)
    for number, share in enumerate(listing.shares, 1):
        here = f"batch {number} of {len(listing.shares)}"
        summary.add(_load_one(spark, store, share, options, lambda words, here=here: notify(f"{words}, {here}")))  # type: ignore[misc]
    return replace(summary, seconds=time.monotonic() - began)


def listed(store: ParquetStore, paths: Sequence[str], options: LoadOptions) -> Listing:
    """Return what is new in the sources."""
    inputs = read_inputs({**options.reader, "paths": json.dumps(list(paths))})
    most = options.most_bytes(inputs.parallel)
    return list_sources(inputs._replace(listed=options.found), store.loaded(), most)


def _load_one(
    spark: SparkSession, store: ParquetStore, share: SourceBatch, options: LoadOptions, notify: Callable[[str], None]
) -> BuiltBatch:
    stage = stage_of(store, store.staging(share.id), share.id)
    notify(f"Reading {len(share.paths):,} files")
    reader = reader_of(share, options)
    tasks = list(reader.partitions())
    staged = list(run_tasks(spark, len(tasks), lambda number: stage.run(reader.read(tasks[number]))))
    built = build(spark, store, stage, staged, notify)
    notify("Committing")
    store.commit(TableBatch(share.id, built.parts, share.sources))
    return built


def reader_of(share: SourceBatch, options: LoadOptions) -> EventReader:
    """Return the reader of a batch; it runs in the workers, without Spark in between."""
    files = [[path, *source] for path, source in share.sources.items()]  # a topic has no entry
    what = {"files": json.dumps(files)} if files else {"paths": json.dumps(share.paths)}
    return EventSource({**options.reader, **what}).reader(TEXT_EVENT)


def stage_of(store: ParquetStore, folder: str, batch: str) -> BatchStage:
    """Return the stage of a batch in a folder."""
    floor: date | None = store.loaded().floor
    schemas = {name: schema.json() for name in store.names() if (schema := store.schema(name)) is not None}
    return BatchStage(folder, batch, datetime.now(timezone.utc), floor, schemas)


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


def preview(
    spark: SparkSession,
    store: ParquetStore,
    paths: Sequence[str],
    options: LoadOptions,
    notify: Callable[[str], None] = lambda words: None,
) -> LoadPreview:
    """Read what is new in sources without writing.

    Raises:
        ConfigError: a path does not exist or can't be listed.
    """
    options = options.planned(parallelism(spark))
    listing = listed(store, paths, options)
    readers = [reader_of(share, options) for share in listing.shares]
    tasks = [(reader, task) for reader in readers for task in reader.partitions()]
    if not tasks:
        return LoadPreview(0, 0, listing.known, 0, 0, 0, [])
    notify(f"Reading {listing.files:,} files")
    stage = stage_of(store, "", "preview")
    rows = run_tasks(spark, len(tasks), lambda number: stage.preview(tasks[number][0].read(tasks[number][1])))
    _, counts, seen = gather(rows)
    _, lines = grow(store, seen, counts["unseen"])
    numbers = counts["events"], counts["quarantine"]
    return LoadPreview(listing.files, listing.bytes, listing.known, len(listing.shares), *numbers, lines)
