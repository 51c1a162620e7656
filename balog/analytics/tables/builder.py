"""Builds everything that one commit adds from a batch's staged events: tables of payload types, and rollups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.rollups.frames import FRAMES, ROLLUP, merge_quarantine, split
from balog.analytics.rollups.frames import merge as merge_rollups
from balog.analytics.tables.deduplication import new_events, new_quarantine
from balog.analytics.tables.derivation import ROLLED, Derivation, DerivationTask, PayloadTable, share_files
from balog.analytics.tables.log import read_columns
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.shapes import PayloadShape, first_schema
from balog.analytics.tables.stage import BatchStage, DayFiles
from balog.analytics.tables.store import ROLLUPS, StagedFile, TableError, TablePart, is_own, read_files, table_name
from balog.analytics.tables.table_schema import merge
from balog.analytics.tables.worker_rows import COUNT, SHAPE, Row, encode_files, run_in_workers

MOST_TYPES = 300
"""Payload types with a table of their own, those with the most events. Other events are only in ``events``."""

_MOST_NAMED = 10  # types without a table to list in a line
_FEW = 20_000
_JOBS = 3  # concurrent jobs of Spark: the start and end of one overlap with the work of another


class BuiltBatch(NamedTuple):
    """A batch that is ready to commit.

    Attributes:
        parts: by table.
        duplicates: events that were dropped because the tables or the batch have them already.
        too_old: events that were dropped because they are before the floor.
        lines: messages about new tables and columns.
    """

    parts: dict[str, TablePart]
    duplicates: int
    too_old: int
    lines: list[str]


def build(
    spark: SparkSession,
    store: ParquetStore,
    stage: BatchStage,
    staged: Iterable[Row],
    notify: Callable[[str], None] = lambda words: None,
) -> BuiltBatch:
    """Remove duplicates from staged events and derive the other tables. Everything is staged, nothing is committed.

    Args:
        spark: the session.
        store: the tables.
        stage: where to stage.
        staged: the results of ``BatchStage.run`` in the workers.
        notify: called with the current step.

    Raises:
        TableError: the rows of a table are not the lines that were read, without duplicates.
        RowError: see ``Derivation.run``.
    """
    files, counts, seen = gather(staged)
    notify("Looking for duplicates")
    bad = new_quarantine(spark, store, stage, files["quarantine"])
    events, duplicates = new_events(spark, store, stage, files["events"], is_timeless=bool(counts["timeless"]))
    kinds, lines = grow(store, seen, counts["unseen"]) if events.files else ([], [])
    notify("Writing tables of payload types and rollups")
    tasks = share_files(events.files)
    derive = Derivation(stage, kinds)
    planned = [(task.paths, task.merge) for task in tasks]  # less to send to workers

    def run(number: int) -> Iterator[pa.RecordBatch]:
        paths, merge = planned[number]
        return derive.run(paths, merge=merge)

    new_files, derived, _ = gather(run_tasks(spark, len(tasks), run))
    typed = {kind.table: TablePart(read_columns(kind.schema), new_files[kind.table]) for kind in kinds}
    staged_rows = rows_of([*files["events"], *files["quarantine"]])
    _check("lines", counts["read"], staged_rows + counts["old"])
    _check("events", rows_of(files["events"]), events.rows + duplicates)
    _check("rows of payload types", events.rows, derived["untyped"] + sum(part.rows for part in typed.values()))
    parts = {"events": _merged(events, tasks, new_files["events"]), "quarantine": bad}
    return BuiltBatch(parts | typed | _roll(spark, stage, new_files[ROLLED], bad), duplicates, counts["old"], lines)


def rows_of(files: Iterable[StagedFile]) -> int:
    """Return the number of rows of files."""
    return sum(file.rows for file in files)


def _check(what: str, came: int, stayed: int) -> None:
    """Check that each row that came in is somewhere.

    Raises:
        TableError: a row is lost, or there twice.
    """
    if came != stayed:
        raise TableError(f"{came:,} {what} came in, and {stayed:,} are accounted for; nothing was committed", "events")


class SeenType(NamedTuple):
    """What workers found of a payload type: the number of events, duplicates included, and the fields."""

    rows: int
    fields: t.StructType


def gather(staged: Iterable[Row]) -> tuple[dict[str, list[StagedFile]], Counter[str], dict[str, SeenType]]:
    """Group the results of workers: files by table, counts, and the shapes of payloads by type."""
    files: dict[str, list[StagedFile]] = defaultdict(list)
    counts: Counter[str] = Counter()
    shapes: dict[str, PayloadShape] = {}
    rows: Counter[str] = Counter()
    for table, file, shape in staged:
        if table == SHAPE and shape is not None:
            shapes.setdefault(file.path, PayloadShape()).unite(msgspec.json.decode(shape, type=PayloadShape))
            rows[file.path] += file.rows
        elif table == COUNT:
            counts[file.path] += file.rows
        else:
            files[table].append(file)
    return files, counts, {name: SeenType(rows[name], shape.struct()) for name, shape in sorted(shapes.items())}


def run_tasks(spark: SparkSession, tasks: int, run: Callable[[int], Iterator[pa.RecordBatch]]) -> Iterator[Row]:
    """Run tasks in workers; ``run`` gets a task's number and yields rows of ``FILES``."""
    if not tasks:
        return iter(())

    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from run(number)

    return run_in_workers(spark.range(0, tasks, 1, tasks), each)


def grow(store: ParquetStore, seen: Mapping[str, SeenType], others: int = 0) -> tuple[list[PayloadTable], list[str]]:
    """Decide the tables and columns of payload types, and return messages about what is new.

    Existing tables get new columns. The types with the most events get new tables, up to the limit.

    Args:
        store: the tables.
        seen: by payload type.
        others: events of further types, whose names were not kept.
    """
    tables = {name for name in store.names() if not is_own(name)}
    room = MOST_TYPES - len(tables)
    fresh = sorted((name for name in seen if table_name(name) not in tables), key=lambda name: (-seen[name].rows, name))
    left = {name: seen[name].rows for name in fresh[max(room, 0) :]}
    kinds, lines = [], []
    for cls_type, (_, fields) in seen.items():
        if cls_type in left:
            continue
        name = table_name(cls_type)
        before = store.schema(name)
        known = before or first_schema(cls_type)
        change = merge(known, fields)
        if before is None:
            renamed = "" if name == cls_type else f" (for the payload type {cls_type!r:.200})"
            lines.append(f"{name}: new table of {len(change.schema)} columns{renamed}")
        if known is not None:
            lines += [f"{name}: {line}" for line in change.lines]
        kinds.append(PayloadTable(cls_type, name, change.schema.json(), change.schema != before))
    if left or others:
        named = ", ".join(f"{name!r:.60} ({rows:,} events)" for name, rows in list(left.items())[:_MOST_NAMED])
        more = "" if len(left) <= _MOST_NAMED and not others else ", …"
        events = sum(left.values()) + others
        lines.append(
            f"no table of its own, since there are {MOST_TYPES}: {len(left):,} payload types, {events:,} events, which "
            f"are in the table events: {named}{more}"
        )
    return kinds, lines


def _merged(events: TablePart, tasks: Sequence[DerivationTask], written: Sequence[StagedFile]) -> TablePart:
    """Return the events in the files that tasks have merged, and in the other ones as they were."""
    part = TablePart(events.schema, [*(file for task in tasks if not task.merge for file in task.files), *written])
    _check("events", events.rows, part.rows)
    return part


def _roll(spark: SparkSession, stage: BatchStage, rolled: Sequence[StagedFile], bad: TablePart) -> dict[str, TablePart]:
    """Stage the rollups of a batch, with one row for each key; readers merge them with those of other batches."""
    parts = {ROLLUPS[name]: TablePart(columns) for name, columns in FRAMES.items()}
    frames: dict[str, DataFrame] = {}
    if rolled:
        rows = read_files(spark, ROLLUP, [file.path for file in rolled])
        if rows_of(rolled) < _FEW:
            rows = rows.coalesce(1)  # readers merge them without a shuffle
        frames = merge_rollups(split(rows))._asdict()
        del frames["quarantine"]
    if bad.files:
        frames["quarantine"] = merge_quarantine(bad.frame(spark).withColumn("lines", f.lit(1).cast("bigint")))
    with ThreadPoolExecutor(_JOBS) as pool:
        jobs = {name: pool.submit(_write, stage, ROLLUPS[name], frame) for name, frame in frames.items()}
        return parts | {ROLLUPS[name]: TablePart(FRAMES[name], job.result()) for name, job in jobs.items()}


def _write(stage: BatchStage, table: str, frame: DataFrame) -> list[StagedFile]:
    when = "hour" if "hour" in frame.columns else ""
    day = None if when else stage.loaded.date()

    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        days = DayFiles(stage, table, day, when)
        for batch in batches:
            days.add(pa.Table.from_batches([batch]))
        yield encode_files([(table, file, None) for file in days.close()])

    return [file for _, file, _ in run_in_workers(frame, each)]
