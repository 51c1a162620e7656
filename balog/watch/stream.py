"""Watch topics: the consumer engine brings the events, and a thread of its own reads the clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from balog.common.backoff import Backoff
from balog.common.config import locate
from balog.common.errors import ConfigError, ConfigProblems, TopicError
from balog.common.signals import TICK_SECONDS, StepThread
from balog.common.text import counted
from balog.consumers import ConsumerHub
from balog.consumers.consumer import Consumer
from balog.consumers.hooks import Hook
from balog.consumers.outcomes import Retry
from balog.event import Event
from balog.topics import GroupState, Topics
from balog.watch.config.config_check import load_monitors
from balog.watch.merging import TopicMerge
from balog.watch.observations import LagObserved
from balog.watch.watcher import Watcher

LAG_SECONDS = 15.0
"""Seconds between two looks at the lag of topics."""

BATCH = (500, 0.5)
"""Events in one transaction, and seconds to wait for them."""


_STORE_BACKOFF = Backoff(0.2, 5.0)
_LOOK_SECONDS = 0.2


class TopicWatch(StepThread):
    """The watcher of topics as consumers of an engine, and its clock. Use it as a context around the engine's run.

    Args:
        watcher: evaluates the events.
        topics: the backend.
        names: the topics to watch.
        group: the engine's group.
        path: the file of monitors, which is read again when it changes.
        say: called with one line for the operator.

    Attributes:
        hub: the consumers for the engine, which needs a thread for each topic.
        hooks: for the engine.
    """

    def __init__(
        self,
        watcher: Watcher,
        topics: Topics,
        names: Sequence[str],
        group: str,
        path: str | os.PathLike[str],
        say: Callable[[str], None],
    ) -> None:
        super().__init__("balog watch", say)
        self.hub = ConsumerHub()
        for name in dict.fromkeys(names):
            take = partial(self._take, name)
            self.hub.add(Consumer(take, name, name=f"balog watch {name}", batch=BATCH, concurrency=1, retries=1000))
        self._watcher = watcher
        self._topics = topics
        self._names = list(dict.fromkeys(names))
        self._merge = TopicMerge(self._names, self._waiting_in, watcher.now)
        self.hooks: tuple[Hook, ...] = (self._merge,)
        self._group = group
        self._path = Path(path)
        self._stamp = _stamp(self._path)
        self._lag_in = 0.0

    def step(self) -> None:
        """Read the clock, the file of monitors and, when it is time, the lag; commit what follows."""
        self._reload()
        if self._watcher.is_due() and self._is_caught_up():
            self._watcher.tick()
        self._lag_in -= TICK_SECONDS
        if self._lag_in <= 0 and self._watcher.evaluation.clock:
            self._lag_in = LAG_SECONDS
            self._watcher.observe(self._lags(self.now()))
        self._watcher.flush()

    def wait_for_leases(self, seconds: float) -> None:
        """Wait until no message is leased to a watcher that died: its events come before later ones.

        Args:
            seconds: the most to wait, for another consumer that lives and has the same group.
        """
        end, is_reported = time.monotonic() + seconds, False
        while (held := self._held()) and time.monotonic() < end:
            if not is_reported:
                events = counted(held, "event", "are", f"{held:,}")
                self._say(f"{events} leased to a watcher that died; waiting until they come again")
                is_reported = True
            time.sleep(_LOOK_SECONDS)

    def now(self) -> float:
        """Return the time of observations that come from no event; 0 (the evaluation's own) while events wait."""
        return self._watcher.now() if self._is_caught_up() else 0.0

    def _take(self, name: str, settings: object, events: Sequence[Event]) -> None:
        self._merge.take(name, events, self._handle)

    def _handle(self, events: Sequence[Event]) -> None:
        """Handle events. They wait here while the state cannot be written: tried one by one, they would change places.

        Raises:
            Retry: the engine stops.
        """
        failures = 0
        while True:
            try:
                self._watcher.handle(events)
            except TopicError as error:
                failures += 1
                if failures == 1:
                    self._say(f"{error}; the events wait")
                if self._merge.wait_for_end(_STORE_BACKOFF.delay(failures)):
                    raise Retry("the engine stops") from error
            else:
                if failures:
                    self._say("the state is written again")
                return

    def _is_caught_up(self) -> bool:
        """Return whether no event waits: one that waits may be the success whose absence would fire."""
        return not any(map(self._waiting_in, self._names))

    def _waiting_in(self, name: str) -> int:
        state = self._state(name, self._group)
        return 0 if state is None else state.pending

    def _held(self) -> int:
        states = (self._state(name, self._group) for name in self._names)
        return sum(state.in_flight for state in states if state is not None)

    def _lags(self, now: float) -> list[LagObserved]:
        """Return the lag of each group that a monitor names, at the later of a time and the evaluation's clock."""
        wanted = {
            (lag.topic, lag.group)
            for monitor in self._watcher.evaluation.monitors.values()
            if (lag := monitor.config.lag) is not None
        }
        lags = []
        for topic, group in sorted(wanted):
            state = self._state(topic, group)
            if state is not None:
                lags.append(LagObserved(time=now, topic=topic, group=group, lag=state.pending))
        return lags

    def _state(self, topic: str, group: str) -> GroupState | None:
        group_topic = self._topics.topic(topic)
        return group_topic.group_state(group) if group_topic.exists() else None

    def _reload(self) -> None:
        stamp = _stamp(self._path)
        if stamp in (self._stamp, None):
            return
        self._stamp = stamp
        try:
            monitors = load_monitors(self._path)
        except ConfigError as error:
            for problem in locate(error.problems if isinstance(error, ConfigProblems) else [error]):
                self._say(f"the monitors were not changed: {problem}")
            return
        self._watcher.replace_monitors(monitors)
        self._say(f"{self._path} was read again, {len(monitors)} monitors")


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None  # an editor is replacing it
    return status.st_mtime_ns, status.st_size, status.st_ino
