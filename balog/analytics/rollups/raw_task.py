"""Reads slices of files in processes of the embedded engine: the reader and the rollup of Spark's workers, into files.

There is a child process for each core; they end with this process's call. ``main`` serves one job: it reads lines of
JSON from stdin and answers each task on stdout.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from balog.analytics.reading.inputs import read_inputs
from balog.analytics.reading.projection import project
from balog.analytics.reading.scan import EventQuery, Query, scan
from balog.analytics.reading.schemas import QUARANTINE, struct
from balog.analytics.reading.tasks import Slice
from balog.analytics.rollups.schemas import IDS
from balog.analytics.rollups.selection import COLUMNS, Selection
from balog.analytics.rollups.worker import EVENT_COLUMNS, RollupQuery, hashes_of, roll_batches, with_context
from balog.common.errors import BalogError
from balog.common.signals import blocking, signals_for_main_thread

_COLUMNS = struct(
    "id string, channel string, timestamp timestamp, level string, payload_json string",
    context=struct("application string, run_id string"),
    quarantine=QUARANTINE,
)


class RawJob(msgspec.Struct, frozen=True):
    """What all tasks share.

    Attributes:
        options: of the data source.
        selection: which events count; None for all.
        copied: a file of sorted 64-bit hashes: events with one of these ids are written as they are. "" for none.
    """

    options: dict[str, str]
    selection: Selection | None = None
    copied: str = ""


class RawTask(msgspec.Struct, frozen=True):
    """Slices of files to read, and the path without suffix of the files to write.

    These are ``.rows`` (rollup rows), ``.ids`` (rollup rows of the kind ``ids``), both Arrow IPC, and ``.parquet`` (the
    events with copies).
    """

    slices: list[tuple[str, int, int | None]]
    path: str


def run(job: RawJob, task: RawTask) -> None:
    """Read the slices of one task, and write its files."""
    inputs = read_inputs(job.options)
    selects = job.selection is not None or bool(job.copied)
    columns = COLUMNS if job.selection is not None else _COLUMNS
    query: Query = EventQuery(project(columns)) if selects else RollupQuery(with_ids=True)
    with ExitStack() as files:
        batches = scan([Slice(*piece) for piece in task.slices], query, inputs.storages, inputs.form)
        if selects:
            events = _without_copies(_selected(batches, job.selection), job.copied, task.path, files)
            batches = roll_batches(events, with_ids=not job.copied)
        rows = files.enter_context(pa.ipc.new_file(f"{task.path}.rows", RollupQuery().arrow))
        ids = files.enter_context(pa.ipc.new_file(f"{task.path}.ids", RollupQuery().arrow))
        for batch in batches:
            is_ids = pc.fill_null(pc.equal(batch.column("kind"), IDS), False)
            rows.write(_without_text(batch.filter(pc.invert(is_ids))))
            ids.write(batch.filter(is_ids))


def _selected(batches: Iterator[pa.RecordBatch], selection: Selection | None) -> Iterator[pa.RecordBatch]:
    """Yield the events that count and invalid lines, in the columns of ``roll_batches``."""
    for batch in batches:
        kept = selection.keep(batch) if selection is not None else batch
        yield with_context(kept).select([*EVENT_COLUMNS, "quarantine"])


def _without_copies(
    batches: Iterator[pa.RecordBatch], copied: str, path: str, files: ExitStack
) -> Iterator[pa.RecordBatch]:
    """Yield events whose ids are unique; write the others to a Parquet file, which the first of them makes."""
    if not copied:
        yield from batches
        return
    hashes = np.memmap(copied, np.uint64, "r")
    file: pq.ParquetWriter | None = None
    for batch in batches:
        batch_hashes = hashes_of(pa.Table.from_batches([batch])).to_numpy(zero_copy_only=False)
        indices = np.minimum(np.searchsorted(hashes, batch_hashes), len(hashes) - 1)
        is_copy = pc.and_(pa.array(hashes[indices] == batch_hashes), pc.invert(batch.column("quarantine").is_valid()))
        copies = batch.filter(is_copy)
        if copies.num_rows:
            if file is None:
                file = files.enter_context(pq.ParquetWriter(f"{path}.parquet", copies.schema))
            file.write_batch(copies)
        yield batch.filter(pc.invert(is_copy))


def _without_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without the text of invalid lines, which no rollup has."""
    index = batch.schema.get_field_index("quarantine")
    bad = batch.column(index)
    fields = list(bad.type)
    parts = [pa.nulls(len(bad), field.type) if field.name == "raw" else bad.field(field.name) for field in fields]
    without = pa.StructArray.from_arrays(parts, fields=fields, mask=bad.is_null())
    return batch.set_column(index, batch.schema.field(index), without)


class _WithoutPandas:
    """Hides pandas, which pyarrow imports when it is installed (0.2 s), and which nothing here uses."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def main() -> None:
    """Serve one job: read it from stdin, then tasks until the end of stdin; answer each with an error, or ""."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    sys.meta_path.insert(0, _WithoutPandas())
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may write to the answers
    requests = sys.stdin.buffer
    job = msgspec.json.decode(requests.readline(), type=RawJob)
    for request in requests:
        answer = ""
        try:
            run(job, msgspec.json.decode(request, type=RawTask))
        except BalogError as error:
            answer = str(error)
        except Exception as error:
            answer = f"{type(error).__name__}: {str(error).splitlines()[:1]}"
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()


_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from balog.analytics.rollups.raw_task import main; main()"


def run_tasks(job: RawJob, tasks: Sequence[RawTask], workers: int) -> None:
    """Run tasks, and wait for them; a single task runs in this process.

    Raises:
        BalogError: a task failed, or a process ended.
    """
    if min(len(tasks), workers) <= 1:
        for task in tasks:
            run(job, task)
        return
    children: list[_Child] = []
    left: queue.SimpleQueue[RawTask] = queue.SimpleQueue()
    for task in tasks:
        left.put(task)
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    try:
        for _ in range(min(len(tasks), workers)):
            children.append(_Child(job))
        with signals_for_main_thread():
            for child in children:
                threading.Thread(target=child.work, args=(left, answers), daemon=True, name="balog-read").start()
        for _ in tasks:
            if problem := answers.get():
                raise BalogError(problem)
    finally:
        for child in children:
            child.kill()


class _Child:
    def __init__(self, job: RawJob) -> None:
        command = [sys.executable, "-I", "-c", _CHILD, *filter(None, sys.path)]
        try:
            with blocking(signal.SIGINT):
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
        except OSError as error:
            raise BalogError(f"no process can be started to read in: {error.strerror or error}") from None
        self._job = job

    def work(self, left: queue.SimpleQueue[RawTask], answers: queue.SimpleQueue[str | None]) -> None:
        """Run tasks until none is left; answer each with "" or its error."""
        try:
            self._ask(self._job)
            while True:
                self._ask(left.get_nowait())
                answers.put(self._answer())
        except queue.Empty:
            pass
        except (OSError, ValueError):  # it ended before it read the task
            answers.put(self._ending())

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                file.close()  # type: ignore[union-attr]

    def _ask(self, content: Any) -> None:
        self._process.stdin.write(msgspec.json.encode(content) + b"\n")  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]

    def _answer(self) -> str:
        answer = self._process.stdout.readline()  # type: ignore[union-attr]
        return msgspec.json.decode(answer, type=str) if answer else self._ending()

    def _ending(self) -> str:
        code = self._process.wait()
        try:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        except ValueError:
            how = f"signal {-code}"
        return f"a process that reads files ended ({how}); is memory full? Run it again, or with --engine spark"


def cores() -> int:
    """Return how many processes can run at the same time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
