"""Events into a sink, through a bounded queue and a thread: the caller never waits."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from balog.errors import complain
from balog.event import decode
from balog.outputs.base import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from balog.outbound import Dispatcher
    from balog.outbound.spool import SpoolConfig
    from balog.sinks import Delivery, Sink, SinkConfig

__all__ = ["QueuedOutput", "flush_all"]


class QueuedOutput(Output):
    """Hands events to a sink's own thread. A full queue drops and counts, or, with a spool, goes to disk.

    With a spool whose ``sync`` is 0, ``write`` returns when the event is on disk.

    The thread begins with the first event. After a fork the child begins with an empty queue and a thread of its own:
    what the parent had queued is the parent's to deliver. A child that ends by ``os._exit`` has to ``flush`` before.
    """

    def __init__(self, config: SinkConfig, spool: SpoolConfig | None = None) -> None:
        self._config = config
        self._spool = spool
        config.build()  # refused here rather than at the first event
        # Clients such as boto3 want it when they are first used; once the main thread is over it can't be imported.
        import concurrent.futures.thread  # noqa: F401

        self._dispatcher: Dispatcher | None = None
        self._lock = threading.RLock()  # a signal handler may log while its thread is in here
        self._lost = 0
        _outputs.add(self)

    def write(self, level: str, event: bytes) -> None:
        """Queue one event."""
        from balog.sinks import Delivery

        delivery = Delivery(decode(event), event)
        with self._lock:  # so that a flush at the same time has either all of an event or nothing
            dispatcher = self._dispatcher or self._start()
            if dispatcher is not None:
                dispatcher.put(delivery)
                dispatcher.sync()
                return
        self._deliver_here(delivery)

    def flush(self, deadline: float) -> int:
        """Deliver what is queued, for at most so many seconds; a later write begins a new thread."""
        with self._lock:
            dispatcher, self._dispatcher = self._dispatcher, None
            _running.discard(self)
        if dispatcher is not None:
            for name, stats in dispatcher.close(deadline).items():
                with self._lock:
                    self._lost += stats.lost
                for line in stats.warnings():
                    complain(f"{name}: {line}")
        return self._lost

    def _start(self) -> Dispatcher | None:
        """Begin a thread; None when the process is ending and can't have one any more."""
        from balog.outbound import Dispatcher

        try:
            # What a spool keeps is built again from its config; no sink that is spooled for has a database.
            config = _BetweenForks(self._config) if self._spool is None else self._config
            self._dispatcher = Dispatcher([config], complain, spool=self._spool)
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
            return None
        _running.add(self)
        return self._dispatcher

    def _deliver_here(self, delivery: Delivery) -> None:
        sink = self._config.build()
        try:
            sink.open()
            sink.write([delivery])
        finally:
            sink.close()

    def _forget(self) -> None:
        if self._dispatcher is not None:
            _inherited.append(self._dispatcher)
        self._dispatcher = None
        self._lock = threading.RLock()
        self._lost = 0


class _BetweenForks:
    """A sink that is never in the middle of something when the process forks.

    A child that is forked in the middle of a transaction can never use that database: SQLite takes the lock that it
    inherits for another thread's. A sink that hangs holds up a fork for a second.
    """

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self._lock = threading.RLock()
        self.where, self.batch, self.retry = config.where, config.batch, config.retry

    @property
    def name(self) -> str:
        return self._config.name

    def build(self) -> Sink:
        self._sink = self._config.build()
        _between_forks.add(self)
        return self

    def open(self) -> None:
        with self._lock:
            self._sink.open()

    def write(self, batch: Sequence[Delivery]) -> None:
        with self._lock:
            self._sink.write(batch)

    def close(self) -> None:
        with self._lock:
            self._sink.close()


_between_forks: weakref.WeakSet[_BetweenForks] = weakref.WeakSet()
_held = threading.local()  # several threads may fork at once
_outputs: weakref.WeakSet[QueuedOutput] = weakref.WeakSet()
_running: set[QueuedOutput] = set()
_inherited: list[Dispatcher] = []
"""What a parent had open is left alone in the child: closing a database there can harm the parent's."""


def flush_all(deadline: float) -> None:
    """Deliver what is queued anywhere, also at outputs that have been replaced and were written to after that."""
    until = time.monotonic() + deadline
    for output in list(_running):
        output.flush(max(0.0, until - time.monotonic()))


def _before_fork() -> None:
    until = time.monotonic() + 1.0
    _held.locks = [
        sink._lock for sink in list(_between_forks) if sink._lock.acquire(timeout=max(0.0, until - time.monotonic()))
    ]


def _after_fork() -> None:
    while _held.locks:
        _held.locks.pop().release()


def _after_fork_in_child() -> None:
    _after_fork()
    _running.clear()
    for output in list(_outputs):
        output._forget()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
