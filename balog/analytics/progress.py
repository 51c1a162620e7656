"""Progress on stderr while Spark works: the step, finished tasks, events, their rate, and the time left.

Tasks come from Spark's status tracker, or from the progress handler of Spark Connect. Events are counted if workers and
driver share a disk: each worker writes its count to a file in a folder that the driver reads.
"""

from __future__ import annotations

import os
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast
from uuid import uuid4

from balog.analytics.progress_lines import ProgressLines

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


_LOOK = 0.3  # seconds between updates
_COUNT = struct.Struct("<q")


class Tally(NamedTuple):
    """The number of finished tasks, and of all tasks, in the active stages."""

    done: int
    total: int


class EventCounts(NamedTuple):
    """The events that workers have read, the tasks that have read any, and the events of the largest task."""

    events: int = 0
    tasks: int = 0
    largest: int = 0


class EventMeter:
    """Counts events in a worker, for the driver.

    Args:
        folder: the driver's folder; if it does not exist here (another machine), nothing is counted.
        task: the name of this attempt; each attempt has its own file.
    """

    def __init__(self, folder: str, task: str) -> None:
        self._file = -1
        with suppress(OSError):
            if folder:
                self._file = os.open(os.path.join(folder, task), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._count = 0

    def add(self, events: int) -> None:
        """Count events; a full disk is ignored."""
        self._count += events
        if self._file >= 0:
            with suppress(OSError):
                os.pwrite(self._file, _COUNT.pack(self._count), 0)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def metered(batches: Iterable[pa.RecordBatch], folder: str) -> Iterator[pa.RecordBatch]:
    """Yield what a task reads, events or rollup rows, and count the events for the driver.

    Args:
        batches: of events or rollup rows.
        folder: see ``EventMeter``; "" counts nothing.
    """
    if not folder:
        yield from batches
        return
    from pyspark import TaskContext

    context = TaskContext.get()
    task = f"{context.stageId()}-{context.partitionId()}.{context.attemptNumber()}" if context else uuid4().hex
    meter = EventMeter(folder, task)
    try:
        for batch in batches:
            meter.add(count_rows(batch))
            yield batch
    finally:
        meter.close()


def count_rows(batch: pa.RecordBatch) -> int:
    """Return the number of events in a batch of events or of rollup rows."""
    import pyarrow.compute as pc

    if "kind" in batch.schema.names:  # rollup rows; each event is in one row of this kind
        return pc.sum(batch.column("events").filter(pc.equal(batch.column("kind"), "events"))).as_py() or 0
    return int(batch.num_rows)


class ProgressDisplay:
    """Shows progress on a terminal, or reports it in lines, or does neither; call it to set the current step."""

    def __init__(self, bars: Any = None, lines: ProgressLines | None = None) -> None:
        self._bars = bars
        self._lines = lines
        self._task = bars.add_task("", total=None, note="") if bars is not None else None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __call__(self, words: str) -> None:
        """Set the current step."""
        if self._bars is not None:
            self._bars.reset(self._task, description=words, total=None, note="")
            self._bars.start()
        elif self._lines is not None:
            self._lines.step = words

    def stop(self) -> None:
        """Clear the terminal before other output; the next step shows the bar again."""
        if self._bars is not None:
            self._bars.stop()

    def stopping(self, out: IO[str]) -> IO[str]:
        """Return a stream that clears the terminal before the first write."""
        return out if self._bars is None else cast("IO[str]", _Stopping(out, self))

    @property
    def folder(self) -> str:
        """The folder for the data source's option ``progress``; "" without a terminal."""
        if self._bars is None:
            return ""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="balog-progress-")
        return self._folder.name

    @contextmanager
    def watching(self, spark: SparkSession) -> Iterator[None]:
        """Show the progress of Spark's jobs."""
        if self._bars is not None:
            with _tallying(spark) as tally, self._updates(tally):
                yield
        elif self._lines is not None:
            with _tallying(spark) as tally:
                self._lines.note = lambda: note(tally(), EventCounts(), 0.0)
                try:
                    yield
                finally:
                    self._lines.note = str
        else:
            yield

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Show the events that child processes count in ``folder``."""
        if self._bars is None:
            yield
            return
        with self._updates(lambda: Tally(0, 0)):
            yield

    @contextmanager
    def _updates(self, tally: Callable[[], Tally]) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._look, args=(tally, stop), daemon=True, name="balog-progress")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _look(self, tally: Callable[[], Tally], stop: threading.Event) -> None:
        began = time.monotonic()
        counts, seconds = EventCounts(), 0.0
        while not stop.wait(_LOOK):
            now = tally()
            before, counts = counts, count_events(self._folder.name) if self._folder is not None else counts
            if counts != before:  # the rate is that of reading, even while results are written
                seconds = time.monotonic() - began
            self._bars.update(self._task, completed=now.done, total=now.total or None, note=note(now, counts, seconds))

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._folder.cleanup()


class _Stopping:
    def __init__(self, out: IO[str], shown: ProgressDisplay) -> None:
        self._out, self._shown = out, shown

    def write(self, text: str) -> int:
        self._shown.stop()
        return self._out.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


@contextmanager
def progress(
    first: str, say: Callable[[str], None] | None = None, *, is_slow: bool = False
) -> Iterator[ProgressDisplay]:
    """Show progress on stderr if it is a terminal, else as lines; call the result to set the current step.

    Args:
        first: the first step.
        say: reports a line; None for no lines.
        is_slow: whether the first step takes some seconds anyway, so a line reports it at once.
    """
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        if say is None:
            yield ProgressDisplay()
            return
        lines = ProgressLines(say, first)
        if is_slow:
            lines.report(first)
        try:
            yield ProgressDisplay(lines=lines)
        finally:
            lines.close()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[note]}", markup=False),
        TimeRemainingColumn(compact=True),
    )
    # rich would redirect stdout to stderr, but it may be meant for a file
    with Bars(*columns, console=console, transient=True, redirect_stdout=False) as bars:
        shown = ProgressDisplay(bars)
        shown(first)
        try:
            yield shown
        finally:
            shown.close()


def note(tally: Tally, counts: EventCounts, seconds: float) -> str:
    """Return the progress as text; it names a task with more than twice the average events, since others wait for it.

    >>> note(Tally(3, 8), EventCounts(1_200_000, 8, 150_000), 4.0)
    '3/8 tasks, 1,200,000 events, 300,000/s'
    >>> note(Tally(3, 8), EventCounts(1_200_000, 8, 600_000), 4.0)
    '3/8 tasks, 1,200,000 events, 300,000/s, one task has 50 %'
    """
    events, tasks, largest = counts
    parts = [f"{tally.done}/{tally.total} tasks"] if tally.total else []
    if events:
        parts += [f"{events:,} events", f"{events / max(seconds, 0.001):,.0f}/s"]
    if largest * tasks > 2 * events:
        parts.append(f"one task has {largest / events:.0%}".replace("%", " %"))
    return ", ".join(parts)


def count_events(folder: str) -> EventCounts:
    """Return the sum of the workers' counts. If a task had several attempts, the one with the most events counts."""
    most: dict[str, int] = {}
    for path in Path(folder).iterdir():
        with suppress(OSError, struct.error):
            task = path.name.partition(".")[0]
            most[task] = max(most.get(task, 0), _COUNT.unpack(path.read_bytes())[0])
    return EventCounts(sum(most.values()), sum(map(bool, most.values())), max(most.values(), default=0))


@contextmanager
def _tallying(spark: Any) -> Iterator[Callable[[], Tally]]:
    if ".connect." not in type(spark).__module__:
        yield lambda: _tally(spark)
        return
    last = Tally(0, 0)

    def take(stages: Iterable[Any] | None, **_: Any) -> None:
        nonlocal last
        found = list(stages or ())
        last = Tally(sum(one.num_completed_tasks for one in found), sum(one.num_tasks for one in found))

    spark.registerProgressHandler(take)
    try:
        yield lambda: last
    finally:
        spark.removeProgressHandler(take)


def _tally(spark: SparkSession) -> Tally:
    done = total = 0
    with suppress(Exception):  # a session that is being stopped does not answer
        tracker = spark.sparkContext.statusTracker()
        for stage in tracker.getActiveStageIds():
            if (known := tracker.getStageInfo(stage)) is not None:
                done, total = done + known.numCompletedTasks, total + known.numTasks
    return Tally(done, total)
