"""Events into a sink through a bounded queue and a thread, without waiting."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from balog.common.errors import complain
from balog.log.outputs.base import LogOutput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from balog.delivery import Dispatcher
    from balog.delivery.spool import SpoolConfig
    from balog.sinks import Delivery, Sink, SinkConfig


class QueuedOutput(LogOutput):
    """Passes events to the thread of a sink. If the queue is full, events go to the spool, or are dropped and counted.

    With a spool whose ``sync`` is 0, ``write`` returns when the event is on disk.

    The thread starts with the first event. After a fork, the child has an empty queue and a thread of its own; the
    parent delivers the events that it had queued. A child that ends with ``os._exit`` must call ``flush`` before.
    """

    def __init__(self, config: SinkConfig, spool: SpoolConfig | None = None) -> None:
        self._config = config
        self._spool = spool
        config.build()  # raises here instead of at the first event
        # Clients such as boto3 import it at their first use, which fails after the main thread has ended.
        import concurrent.futures.thread  # noqa: F401

        self._dispatcher: Dispatcher | None = None
        self._lock = threading.RLock()  # a signal handler may log while its thread is in here
        self._lost = 0
        _outputs.add(self)

    def write(self, level: str, event: bytes) -> None:
        """Queue one event."""
        from balog.sinks import Delivery

        delivery = Delivery(None, event)
        with self._lock:  # a concurrent flush sees the whole event or nothing
            dispatcher = self._dispatcher or self._start()
            if dispatcher is not None:
                dispatcher.put(delivery)
                dispatcher.sync()
                return
        self._deliver_directly(delivery)

    def flush(self, deadline: float) -> int:
        """Deliver the queued events, for at most ``deadline`` seconds. A later write starts a new thread."""
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

    def close(self, deadline: float) -> int:
        """Deliver the queued events. ``deadline`` includes the time in which a sink may finish an attempt."""
        if self._dispatcher is None:
            return self._lost
        from balog.delivery.worker import GRACE

        return self.flush(max(0.0, deadline - GRACE))

    def _start(self) -> Dispatcher | None:
        """Start a thread. Return None if the process is ending and can't start threads."""
        from balog.delivery import Dispatcher

        try:
            # A spool stores the sink's config, which a wrapper does not have. Sinks with a spool use no database.
            config = _ForkSafeConfig(self._config) if self._spool is None else self._config
            self._dispatcher = Dispatcher([config], complain, spool=self._spool)
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
            return None
        _running.add(self)
        return self._dispatcher

    def _deliver_directly(self, delivery: Delivery) -> None:
        sink = self._config.build()
        try:
            sink.open()
            sink.write([delivery])
        finally:
            sink.close()

    def _reset(self) -> None:
        if self._dispatcher is not None:
            _inherited.append(self._dispatcher)
        self._dispatcher = None
        self._lock = threading.RLock()
        self._lost = 0


class _ForkSafeConfig:
    """The config of a sink, which builds it idle at forks."""

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self.name, self.where, self.batch, self.retry = config.name, config.where, config.batch, config.retry

    def build(self) -> Sink:
        return _ForkSafeSink(self._config.build())


class _ForkSafeSink:
    """A sink that is idle whenever the process forks.

    A child that was forked during a transaction could never use that database, because SQLite takes the inherited lock
    for another thread's. A sink that hangs delays a fork by one second.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.RLock()
        _fork_safe_sinks.add(self)

    def open(self) -> None:
        with self._lock:
            self._sink.open()

    def write(self, batch: Sequence[Delivery]) -> None:
        with self._lock:
            self._sink.write(batch)

    def close(self) -> None:
        with self._lock:
            self._sink.close()


_fork_safe_sinks: weakref.WeakSet[_ForkSafeSink] = weakref.WeakSet()
_outputs: weakref.WeakSet[QueuedOutput] = weakref.WeakSet()
_running: set[QueuedOutput] = set()
_inherited: list[Dispatcher] = []
"""Dispatchers of the parent, kept open in the child: closing a database there can damage the parent's."""


def flush_all(deadline: float) -> None:
    """Deliver the queued events of all outputs, including replaced ones that are still written to."""
    until = time.monotonic() + deadline
    for output in list(_running):
        output.flush(max(0.0, until - time.monotonic()))


class _Fork(threading.local):
    """The locks of sinks that a thread holds while it forks; several threads may fork at once."""

    def __init__(self) -> None:
        self._held: list[threading.RLock] = []

    def begin(self) -> None:
        until = time.monotonic() + 1.0
        for sink in list(_fork_safe_sinks):
            if sink._lock.acquire(timeout=max(0.0, until - time.monotonic())):
                self._held.append(sink._lock)

    def end(self) -> None:
        while self._held:
            self._held.pop().release()


_fork = _Fork()


def _after_fork_in_child() -> None:
    _fork.end()
    _running.clear()
    for output in list(_outputs):
        output._reset()


os.register_at_fork(before=_fork.begin, after_in_parent=_fork.end, after_in_child=_after_fork_in_child)
