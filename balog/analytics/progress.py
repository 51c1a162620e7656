"""Progress on stderr while Spark works: the step, finished tasks, and the time left.

Tasks come from Spark's status tracker, or from the progress handler of Spark Connect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from balog.analytics.progress_lines import ProgressLines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LOOK = 0.3  # seconds between updates


class Tally(NamedTuple):
    """The number of finished tasks, and of all tasks, in the active stages."""

    done: int
    total: int


class ProgressDisplay:
    """Shows progress on a terminal, or reports it in lines, or does neither; call it to set the current step."""

    def __init__(self, bars: Any = None, lines: ProgressLines | None = None) -> None:
        self._bars = bars
        self._lines = lines
        self._task = bars.add_task("", total=None, note="") if bars is not None else None

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

    @contextmanager
    def watching(self, spark: SparkSession) -> Iterator[None]:
        """Show the progress of Spark's jobs."""
        if self._bars is not None:
            with _tallying(spark) as tally, self._updates(tally):
                yield
        elif self._lines is not None:
            with _tallying(spark) as tally:
                self._lines.note = lambda: note(tally())
                try:
                    yield
                finally:
                    self._lines.note = str
        else:
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
        while not stop.wait(_LOOK):
            now = tally()
            self._bars.update(self._task, completed=now.done, total=now.total or None, note=note(now))


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
        yield shown


def note(tally: Tally) -> str:
    """Return the progress as text: ``3/8 tasks``."""
    return f"{tally.done}/{tally.total} tasks" if tally.total else ""


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
