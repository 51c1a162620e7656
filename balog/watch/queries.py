"""Run the queries of monitors on a schedule, in a thread of their own: a slow one delays no other alert."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from balog.errors import BalogError
from balog.watch.durations import parse_duration
from balog.watch.observations import QueryObserved
from balog.watch.series import Series
from balog.watch.step_thread import StepThread
from balog.watch.watcher import Watcher

Rows = Sequence[Mapping[str, Any]]

_MAX_LABEL = 300


class QuerySchedule(StepThread):
    """The queries of a watcher's monitors. Use it as a context around the run.

    Args:
        watcher: evaluates the rows.
        ask: runs a query and returns its rows; raises BalogError.
        say: called with one line for the operator.
        now: returns the time of the rows, in seconds since the epoch; 0 while older events wait.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        watcher: Watcher,
        ask: Callable[[str], Rows],
        say: Callable[[str], None],
        now: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("balog watch queries", say)
        self._watcher = watcher
        self._ask = ask
        self._now = now
        self._clock = clock
        self._due: dict[str, float] = {}
        self._errors: dict[str, str] = {}

    def step(self) -> None:
        """Run the queries that are due. A query that fails is reported once, and changes no series."""
        if not self._watcher.evaluation.clock:
            return  # the first event or tick starts the clock
        for name, monitor in list(self._watcher.evaluation.monitors.items()):
            if monitor.config.sql is None or self._due.get(name, 0.0) > self._clock():
                continue
            threshold = monitor.config.threshold
            self._due[name] = self._clock() + parse_duration(threshold.every if threshold is not None else "15m")
            try:
                self._watcher.observe(self._observations(name, self._ask(monitor.config.sql)))
            except BalogError as error:
                if self._errors.get(name) != str(error):
                    self._errors[name] = str(error)
                    self._say(f"monitor {name}: the query failed: {error}")
            else:
                self._errors.pop(name, None)

    def _observations(self, name: str, rows: Rows) -> list[QueryObserved]:
        """Return the rows with a number as ``value``, and one without a value for each series that has no row."""
        found: dict[tuple[tuple[str, str], ...], QueryObserved] = {}
        now = self._now()
        for row in rows:
            value = row.get("value")
            if not isinstance(value, int | float):
                raise BalogError("its rows need a number in a column called value")
            labels = {key: str(one)[:_MAX_LABEL] for key, one in row.items() if key != "value" and one is not None}
            key = tuple(sorted(labels.items()))
            found[key] = QueryObserved(time=now, monitor=name, value=float(value), labels=labels)
        for series in list(self._watcher.evaluation.series.values()):
            labels = _labels_of(series)
            if series.monitor == name and tuple(sorted(labels.items())) not in found:
                found[tuple(sorted(labels.items()))] = QueryObserved(time=now, monitor=name, value=None, labels=labels)
        return list(found.values())


def _labels_of(series: Series) -> dict[str, str]:
    named = {"pipeline": series.pipeline, "stream": series.stream}
    return {**{name: value for name, value in named.items() if value}, **dict(series.labels)}
