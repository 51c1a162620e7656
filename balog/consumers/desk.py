"""A desk: one consumer at work, which decides what its handler is called with next. It knows nothing of threads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from balog.backoff import Backoff
from balog.consumers.consumer import Batch, Consumer
from balog.consumers.delivery import Call, Task

__all__ = ["Desk"]


class _Line:
    """The tasks of one key: those that are in a call or a forming batch, and those that wait behind them."""

    __slots__ = ("active", "is_blocked", "waiting")

    def __init__(self) -> None:
        self.active = 0
        self.is_blocked = False
        """Its call is under way, or a failed task waits to be tried again."""
        self.waiting: deque[Task] = deque()


class Desk:
    """What waits for a consumer: forming batches, and one line for each key where order is asked for.

    The methods that take tasks give the calls that are ready because of it. None is safe against other threads: the
    schedule's lock is.

    Args:
        call: handles one event, or a list of them when the consumer takes batches.
        limit: attempts at an event before it is given up.
        cap: calls at once; None as many as there are workers.
    """

    def __init__(
        self, consumer: Consumer, call: Callable[..., object], limit: int, backoff: Backoff, cap: int | None
    ) -> None:
        self.consumer = consumer
        self.name = consumer.name
        self.call = call
        self.limit = limit
        self.backoff = backoff
        self.batch: Batch | None = consumer.batch
        self.timeout: float | None = consumer.timeout
        self.is_async = consumer.is_async
        self.cap = cap
        self.running: dict[Call, None] = {}
        """Calls under way, the oldest first."""
        self.over_cap: deque[Call] = deque()
        """Calls that are ready but for the cap."""
        self.forming_due = 0.0
        self._forming: list[Task] = []
        self._lines: dict[str, _Line] = {}

    def delay(self, attempt: int) -> float:
        """Return the seconds between this failed attempt and the next, with full jitter."""
        return self.backoff.delay(attempt)

    @property
    def is_forming(self) -> bool:
        """Tell whether a batch waits for more events or for ``forming_due`` (monotonic seconds)."""
        return bool(self._forming)

    def submit(self, task: Task) -> list[Call]:
        """Take a task that is to be done now, or in the turn of its key."""
        if task.key is None:
            return self._advance(task)
        line = self._lines.get(task.key)
        if line is None:
            line = self._lines[task.key] = _Line()
        line.waiting.append(task)
        return self._pump(task.key, line)

    def step(self, key: str, again: Sequence[Task]) -> list[Call]:
        """Take the end of a key's call, with those of its tasks that have to be tried again, in their order."""
        line = self._lines[key]
        line.active = 0
        line.waiting.extendleft(reversed(again))
        if again:
            return []  # all others of the key wait until :meth:`unblock`
        return self.unblock(key)

    def unblock(self, key: str) -> list[Call]:
        """Let a key go on."""
        line = self._lines[key]
        line.is_blocked = False
        return self._pump(key, line)

    def launch(self) -> list[Call]:
        """Take the forming batch as it is."""
        if not self._forming:
            return []
        tasks, self._forming = self._forming, []
        for task in tasks:
            if task.key is not None:
                self._lines[task.key].is_blocked = True
        return [Call(self, tasks)]

    def clear(self) -> None:
        """Forget all that waits."""
        self.over_cap.clear()
        self._forming.clear()
        self._lines.clear()

    def _goes_alone(self, task: Task) -> bool:
        # A poison event must not take its neighbours along: after a failed attempt, or a crash, none has company.
        return self.batch is None or task.is_suspect or task.attempt > 1

    def _advance(self, task: Task) -> list[Call]:
        if self.batch is None or self._goes_alone(task):
            return [Call(self, [task])]
        if not self._forming:
            self.forming_due = time.monotonic() + self.batch.wait
        self._forming.append(task)
        return self.launch() if len(self._forming) >= self.batch.size else []

    def _pump(self, key: str, line: _Line) -> list[Call]:
        """Let the next tasks of a key go, as many as may go together."""
        calls: list[Call] = []
        while line.waiting and not line.is_blocked:
            task = line.waiting[0]
            if self._goes_alone(task):
                if line.active:
                    break  # the forming batch has earlier ones
                line.is_blocked = True
            line.waiting.popleft()
            line.active += 1
            calls += self._advance(task)
        if not (line.waiting or line.active or line.is_blocked):
            del self._lines[key]
        return calls
