"""A backtest in several processes: each replays the events of some pipelines.

A series and an incident are of one pipeline, so no process needs the state of another. Silences and acknowledgements go
to all processes. Every clock begins with the first observation of all events, as in one process.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeVar

from balog.common.errors import BalogError
from balog.event import Event
from balog.watch.config.monitors import MonitorConfig
from balog.watch.evaluation import Evaluation
from balog.watch.history.backtest import SILENCING_TYPES, Backtest, Replay, Replayed, SeenEvents, run_backtest
from balog.watch.observations import observe, pipeline_of

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

_BATCH = 1000

MIN_ROWS = 20_000
"""Rows from which on several processes are faster than one: each needs about a second to start."""

_Row = TypeVar("_Row")


def run_in_processes(
    monitors: Sequence[MonitorConfig],
    rows: Iterable[_Row],
    parse: Callable[[_Row], Event],
    since: float,
    until: float,
    processes: int | None = None,
    min_rows: int = MIN_ROWS,
) -> Backtest:
    """Replay events as ``run_backtest`` does, in several processes if there are many events.

    Args:
        rows: the events in the order of their times, in a form that ``pickle`` copies fast.
        parse: a function of a module that returns the event of a row.
        processes: how many; one for each core by default.
        min_rows: fewer rows are replayed in this process.

    Raises:
        BalogError: a process ended early.
    """
    count = processes or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    source = iter(rows)
    start = list(islice(source, min_rows)) if count > 1 else []
    if len(start) < max(min_rows, 1):
        return run_backtest(monitors, map(parse, chain(start, source)), since, until)
    seen = SeenEvents(since, until)
    with _Workers(monitors, since, until, parse, count) as workers:
        for row in _drain(start, source):
            event = parse(row)
            if not seen.add(event):
                break
            workers.send(row, event)
        return seen.result(workers.results())


def _drain(start: list[_Row], rest: Iterator[_Row]) -> Iterator[_Row]:
    """Yield the rows, and let go of those at the start."""
    start.reverse()
    while start:
        yield start.pop()
    yield from rest


class _Workers:
    """The processes, and which pipeline is whose."""

    def __init__(
        self, monitors: Sequence[MonitorConfig], since: float, until: float, parse: Callable[[Any], Event], count: int
    ) -> None:
        self._places: dict[str, int] = {}
        self._sizes = Counter(dict.fromkeys(range(count), 0))
        for monitor in Evaluation(monitors).monitors.values():
            for pipeline in monitor.pipelines:
                self._place(pipeline)
        self._batches: list[list[Any]] = [[] for _ in range(count)]
        self._has_begun = False
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        context = multiprocessing.get_context("spawn")
        for number in range(count):
            ours, theirs = context.Pipe()
            named = {pipeline for pipeline, index in self._places.items() if index == number}
            process = context.Process(
                target=_work, args=(theirs, list(monitors), since, until, parse, named), daemon=True
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *error: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            if error[0] is not None:
                process.terminate()
            process.join()

    def send(self, row: object, event: Event) -> None:
        """Send an event to the process of its pipeline; silences and acknowledgements go to all."""
        if not self._has_begun and (first := next(observe(event), None)) is not None:
            self._has_begun = True
            for number in range(len(self._pipes)):
                self._flush(number)
                self._put(number, first.time)
        is_for_all = event.cls_type in SILENCING_TYPES
        for number in range(len(self._pipes)) if is_for_all else (self._place(pipeline_of(event)),):
            self._batches[number].append(row)
            if len(self._batches[number]) >= _BATCH:
                self._flush(number)

    def results(self) -> list[Replayed]:
        """End the input, and return what came of it."""
        for number in range(len(self._pipes)):
            self._flush(number)
            self._put(number, None)
        results = []
        for pipe in self._pipes:
            try:
                results.append(pipe.recv())
            except (EOFError, OSError):
                raise BalogError("a process of the backtest ended early; is there enough memory?") from None
        return results

    def _place(self, pipeline: str) -> int:
        """Return the process of a pipeline; a new one goes to the process with the fewest."""
        index = self._places.get(pipeline)
        if index is None:
            index = self._places[pipeline] = min(self._sizes, key=lambda number: self._sizes[number])
            self._sizes[index] += 1
        return index

    def _flush(self, number: int) -> None:
        if self._batches[number]:
            self._put(number, self._batches[number])
            self._batches[number] = []

    def _put(self, number: int, message: list[Any] | float | None) -> None:
        try:
            self._pipes[number].send(message)
        except OSError:
            raise BalogError("a process of the backtest ended early; is there enough memory?") from None


def _work(
    pipe: Connection,
    monitors: list[MonitorConfig],
    since: float,
    until: float,
    parse: Callable[[Any], Event],
    named: set[str],
) -> None:
    """Replay the rows of a pipe. A number is the time at which the clock begins, None the end.

    Args:
        named: the pipelines of this process that monitors name.
    """
    replay = Replay(monitors, since, until, pipelines=named)
    try:
        while (message := pipe.recv()) is not None:
            if isinstance(message, float):
                replay.evaluation.begin(message)
                continue
            for row in message:
                replay.take(parse(row))
        pipe.send(replay.finish())
    except (EOFError, OSError):
        pass  # the other end was closed: an error, which it reports
