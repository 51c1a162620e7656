"""The rollups of files on the embedded engine: the reader of Spark's workers, called in child processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from balog.analytics.reading.inputs import read_inputs
from balog.analytics.reading.schemas import names
from balog.analytics.reading.tasks import COMPRESSED, COMPRESSED_WEIGHT, SourceFile
from balog.analytics.rollups.raw_task import RawJob, RawTask, cores, run_tasks
from balog.analytics.rollups.schemas import FRAMES, ROLLUP, Rollups
from balog.analytics.rollups.selection import Selection
from balog.analytics.rollups.worker import copied_hashes, roll_batches

if TYPE_CHECKING:
    from balog.analytics.duckdb_engine import DuckDBEngine, DuckDBResult

MEMORY = "500MB"
"""The most memory that DuckDB uses for rollups in this process; what is beyond goes to a temporary folder."""


class RawRollups(NamedTuple):
    """The rollups of files as frames of DuckDB, and how many events were dropped as duplicates."""

    rollups: Rollups
    duplicates: int


def size_of(files: Sequence[SourceFile]) -> int:
    """Return the size of files in bytes; a compressed byte counts as eight, which it is about."""
    return sum(file.size * (COMPRESSED_WEIGHT if file.path.endswith(COMPRESSED) else 1) for file in files)


@contextmanager
def open_rollups(
    options: Mapping[str, str], selection: Selection | None = None, *, workers: int = 0
) -> Iterator[RawRollups]:
    """Read files and roll up their events; each id counts once, as in ``from_files``.

    The files are read once. If ids occur several times, they are read a second time, and only the events with those ids
    are kept (on disk), to find the earliest of each. The frames are valid in the block.

    Args:
        options: of the data source, see ``read_inputs``.
        selection: which events count; None for all.
        workers: how many processes read; 0 for one per core.

    Raises:
        ConfigError: a path does not exist.
        BalogError: a process ended, or a disk is full.
    """
    from balog.analytics.duckdb_engine import DuckDBEngine

    workers = workers or cores()
    inputs = read_inputs({**options, "parallel": str(workers)})
    pieces = [[(piece.path, piece.start, piece.end) for piece in task] for task in inputs.tasks()]
    with tempfile.TemporaryDirectory(prefix="balog-read-") as name:
        folder = Path(name)
        own = {name: value for name, value in options.items() if name not in ("path", "paths")}
        own["files"] = "[]"  # a task names its files
        job = RawJob(own, selection)
        tasks = [RawTask(task, str(folder / f"{number}")) for number, task in enumerate(pieces)]
        run_tasks(job, tasks, workers)
        copied = _copied_ids(tasks)
        if len(copied):
            np.unique(copied).tofile(folder / "copied")
            tasks = [RawTask(task, str(folder / f"again-{number}")) for number, task in enumerate(pieces)]
            run_tasks(RawJob(own, selection, str(folder / "copied")), tasks, workers)
        copies = [str(path) for path in sorted(folder.glob("*.parquet"))]
        with DuckDBEngine(copies, MEMORY) as engine:
            duplicates = _roll_copies(engine, folder, copies)
            yield RawRollups(_frames(engine, folder, "again-" if len(copied) else ""), duplicates)


def _copied_ids(tasks: Sequence[RawTask]) -> np.ndarray[Any, Any]:
    """Return the hashes of ids that occur several times; those of one value of the highest bits at a time."""
    tables = [_mapped(Path(f"{task.path}.ids")) for task in tasks]
    rows = pa.concat_tables(tables) if tables else None
    if rows is None or not rows.num_rows:
        return np.empty(0, np.uint64)
    places: dict[int, list[int]] = {}
    for row, bucket in enumerate(rows.column("count").to_pylist()):
        places.setdefault(bucket, []).append(row)
    hashes = rows.column("sketch")
    return np.concatenate([copied_hashes([hashes[row].as_py() for row in indices]) for indices in places.values()])


def _roll_copies(engine: DuckDBEngine, folder: Path, files: list[str]) -> int:
    """Write the rollup rows of the earliest events of ids with copies; return how many events are dropped."""
    if not files:
        return 0
    engine.connection.read_parquet(files).create_view("copies")
    ranked = "row_number() OVER (PARTITION BY id ORDER BY timestamp)"
    first = engine.connection.sql(f"SELECT * FROM copies QUALIFY {ranked} = 1").to_arrow_reader(10_000)  # noqa: S608
    with pa.ipc.new_file(str(folder / "again-copies.rows"), ROLLUP) as file:
        for batch in roll_batches(iter(first)):
            file.write(batch)
    counted = engine.connection.execute("SELECT count(*) - count(DISTINCT id) FROM copies").fetchall()
    return int(counted[0][0])


def _frames(engine: DuckDBEngine, folder: Path, prefix: str) -> Rollups:
    """Return the rows of all tasks as five frames."""
    paths = [path for path in sorted(folder.glob("*.rows")) if path.name.startswith(prefix)]
    rows = engine.table(pa.concat_tables(list(map(_mapped, paths)) or [ROLLUP.empty_table()]))

    def of(kind: str, name: str) -> DuckDBResult:
        columns = ", ".join(names(FRAMES[name]))
        return engine.sql(f"SELECT {columns} FROM {{rows}} WHERE kind = '{kind}'", rows=rows)  # noqa: S608

    bad = engine.sql(
        "SELECT quarantine.reason AS reason, CAST(1 AS BIGINT) AS lines, quarantine.file AS file, "
        "quarantine.offset AS offset FROM {rows} WHERE quarantine IS NOT NULL",
        rows=rows,
    )
    return Rollups(of("events", "events"), of("metric", "metrics"), of("error", "errors"), of("run", "runs"), bad)  # type: ignore[arg-type]


def _mapped(path: Path) -> pa.Table:
    """Return the table of a file without reading it into memory."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
