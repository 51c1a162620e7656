"""Counters that hold a delta until it is due, timers and gauges."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from balog.log.exit_hooks import before_end
from balog.log.guard import guarded
from balog.log.metrics.points import Point, Status, Tag, as_dict, number, write
from balog.log.metrics.ticker import Ticker

DEFAULT_LOG_INTERVAL = 60
"""Seconds that a counter adds up before it writes an event."""


_live: weakref.WeakSet[Counter | Gauge] = weakref.WeakSet()
_remembering = threading.Lock()
_ticker = Ticker("balog metrics")


def _remember(meter: Counter | Gauge) -> None:
    """Write a meter's count at the end of this process only, not of its children."""
    with _remembering:
        _live.add(meter)
    before_end(flush)


def flush() -> None:
    """Write the deltas of all counters, except zeros. ``balog.flush`` then waits for their delivery."""
    with _remembering:
        meters = list(_live)
    for meter in meters:
        if isinstance(meter, Counter):
            meter.flush()


def _forget_all() -> None:
    global _remembering
    _remembering = threading.Lock()
    for meter in list(_live):
        meter._forget()


os.register_at_fork(after_in_child=_forget_all)


class Meter:
    """Base of all meters: a name, tags, a channel, and an event for each number."""

    kind = ""

    def __init__(self, metric: str, tags: Mapping[str, Any] | None, channel: str | None) -> None:
        self.metric = metric
        self.tags: dict[str, Any] = as_dict(tags)
        self.channel = channel

    def share(self) -> None:
        """Make the tags unchangeable, because others read them too."""
        self.tags = MappingProxyType(self.tags)  # type: ignore[assignment]

    def _write(self, value: Any, tags: Mapping[str, Any] | None = None) -> None:
        write(Point(self.kind, self.metric, value, self.tags if tags is None else tags), self.channel)


class Counter(Meter):
    """Counts, and writes the delta each ``log_interval``, at the end of its ``with`` block and of the process.

    Threads may share one. The end of a ``with`` block writes an event also when nothing was added, as singer-python
    does; nothing else writes a zero. What a number is not (``nan`` …) is not added, and a WARNING says so.

    Args:
        metric: its name.
        tags: names and values; what JSON has no word for is written as text.
        log_interval: seconds.
        channel: the channel of its events.

    Attributes:
        value: what was added since the last event.
    """

    kind = "counter"

    def __init__(
        self,
        metric: str,
        tags: Mapping[str, Any] | None = None,
        log_interval: float = DEFAULT_LOG_INTERVAL,
        *,
        channel: str | None = None,
    ) -> None:
        super().__init__(metric, tags, channel)
        self.value: int | float = 0
        self.log_interval = log_interval
        self._since = time.monotonic()
        self._blocks = 0
        self._is_watched = False
        self._lock = threading.RLock()  # a signal handler may count too
        _remember(self)

    def __enter__(self) -> Counter:
        with self._lock:
            self._blocks += 1
            self._since = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks = max(0, self._blocks - 1)
        self._pop()

    @guarded()
    def increment(self, amount: int | float = 1) -> None:
        """Add to the count."""
        added = amount if type(amount) is int else number(amount)
        if added is None:
            self._write(amount)
            return
        with self._lock:
            self.value += added
            is_ready = self._ready_to_log()
            watch = not (is_ready or self._is_watched or self._blocks)
            self._is_watched = self._is_watched or watch
        if is_ready:
            self._pop()
        elif watch:
            _ticker.watch(self)

    def due(self) -> float:
        """Return the time of the next write, in seconds of ``time.monotonic``."""
        interval = self.log_interval
        return self._since + (interval if type(interval) in (int, float) else number(interval) or DEFAULT_LOG_INTERVAL)

    @guarded()
    def flush(self) -> None:
        """Write the delta, unless it is 0."""
        self._is_watched = False
        if self.value:
            self._pop()

    def _ready_to_log(self) -> bool:
        return time.monotonic() > self.due()

    def _pop(self) -> None:
        with self._lock:
            value, self.value, self._since = self.value, 0, time.monotonic()
        self._write(value)

    def _forget(self) -> None:
        self.value, self._is_watched, self._lock = 0, False, threading.RLock()


class Timer(Meter):
    """Writes how long its ``with`` block took, in seconds, with a tag ``status``: ``succeeded`` or ``failed``.

    A ``status`` among the tags stays as it is. A timer times one thing at a time: threads take one each.

    Args:
        metric: its name.
        tags: names and values; more may be added to the timer's ``tags`` while it runs.
        channel: the channel of its events.

    Attributes:
        start_time: when it began, in seconds since the epoch; None before.
    """

    kind = "timer"

    def __init__(self, metric: str, tags: Mapping[str, Any] | None = None, *, channel: str | None = None) -> None:
        super().__init__(metric, tags, channel)
        self.start_time: float | None = None
        self._began = 0.0

    def __enter__(self) -> Timer:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(Status.succeeded if kind is None else Status.failed)

    def start(self) -> Timer:
        """Start the timer, where a ``with`` block does not fit."""
        self.start_time = time.time()
        self._began = time.monotonic()
        return self

    def stop(self, status: str = Status.succeeded) -> float:
        """Stop the timer, write the event and return the seconds."""
        seconds = self.elapsed()
        self._write(seconds, {Tag.status: status, **as_dict(self.tags)})
        return seconds

    def elapsed(self) -> float:
        """Return the seconds since the start; 0 before it."""
        return 0.0 if self.start_time is None else time.monotonic() - self._began

    def observe(self, seconds: float) -> None:
        """Write a time measured elsewhere, in seconds, without a status."""
        self._write(seconds)


class Gauge(Meter):
    """A level that goes up and down; each change writes an event. Threads may share one.

    As a ``with`` block it counts how many are inside: one more at the beginning, one less at the end.

    Args:
        metric: its name.
        tags: names and values.
        channel: the channel of its events.

    Attributes:
        value: the level now.
    """

    kind = "gauge"

    def __init__(self, metric: str, tags: Mapping[str, Any] | None = None, *, channel: str | None = None) -> None:
        super().__init__(metric, tags, channel)
        self.value: int | float = 0
        self._lock = threading.RLock()
        _remember(self)

    def __enter__(self) -> Gauge:
        self.add(1)
        return self

    def __exit__(self, *_: object) -> None:
        self.add(-1)

    @guarded()
    def set(self, value: int | float) -> None:
        """Set the level."""
        level = number(value)
        with self._lock:
            self.value = self.value if level is None else level
            self._write(value if level is None else level)

    @guarded()
    def add(self, amount: int | float) -> None:
        """Raise or lower the level."""
        added = number(amount)
        with self._lock:
            self.value += added or 0
            self._write(amount if added is None else self.value)

    def _forget(self) -> None:
        self._lock = threading.RLock()
