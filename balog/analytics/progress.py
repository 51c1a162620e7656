"""Progress on stderr while Spark works: the step, finished tasks, and the time left.

A terminal shows a bar; elsewhere, as in the log of a cron job or of CI, there is a line every half minute. Tasks come
from Spark's status tracker, or from the progress handler of Spark Connect.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK = 0.3  # seconds between updates of a bar
_EVERY = 30.0  # seconds between lines


class Tally(NamedTuple):
    """The number of finished tasks, and of all tasks, in the active stages."""

    done: int = 0
    total: int = 0

    @property
    def note(self) -> str:
        """The progress as text: ``3/8 tasks``, or ""."""
        return f"{self.done}/{self.total} tasks" if self.total else ""


class ProgressDisplay:
    """Shows progress on a terminal, or reports it in lines, or does neither; call it to set the current step.

    Args:
        bars: bars of rich, for a terminal.
        say: reports a line, without a terminal.
        step: the first step.
        every: seconds between two updates.
    """

    def __init__(
        self, bars: Any = None, say: Callable[[str], None] | None = None, step: str = "", every: float = _EVERY
    ) -> None:
        self._bars, self._say, self._step, self._every = bars, say, step, every
        self._task = bars.add_task(step, total=None, note="") if bars is not None else None
        self._tally: Callable[[], Tally] = Tally
        self._began = time.monotonic()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="balog-progress")
        if bars is not None or say is not None:
            self._thread.start()

    def _run(self) -> None:
        while not self._closed.wait(self._every):
            now = self._tally()
            if self._bars is not None:
                self._bars.update(self._task, completed=now.done, total=now.total or None, note=now.note)
            else:
                note = now.note and f" ({now.note})"
                self.report(f"{self._step}{note}, {time.monotonic() - self._began:,.0f} s")

    def report(self, line: str) -> None:
        """Report a line. A closed stderr does not end the work."""
        if self._say is not None:
            with suppress(OSError):
                self._say(line)

    def __call__(self, words: str) -> None:
        """Set the current step."""
        self._step = words
        if self._bars is not None:
            self._bars.reset(self._task, description=words, total=None, note="")
            self._bars.start()

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
        with _tallying(spark) as tally:
            self._tally = tally
            try:
                yield
            finally:
                self._tally = Tally

    def close(self) -> None:
        """Report nothing more."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()


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

    console, bars, every = Console(stderr=True), None, _EVERY
    if console.is_terminal:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(compact=True),
        )
        # rich would redirect stdout to stderr, but it may be meant for a file
        bars, every = Bars(*columns, console=console, transient=True, redirect_stdout=False), _LOOK
    display = ProgressDisplay(bars, say, first, every)
    if bars is not None:
        display(first)
    elif is_slow:
        display.report(first)
    try:
        yield display
    finally:
        display.close()
        display.stop()


@contextmanager
def _tallying(spark: Any) -> Iterator[Callable[[], Tally]]:
    if ".connect." not in type(spark).__module__:
        yield lambda: _tally(spark)
        return
    last = Tally()

    def take(stages: Iterable[Any] | None, **_: Any) -> None:
        nonlocal last
        infos = list(stages or ())
        last = Tally(sum(info.num_completed_tasks for info in infos), sum(info.num_tasks for info in infos))

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
