"""The dispatcher: hands each event to the workers of all sinks, so that a slow or failing sink delays no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from balog.common.errors import ConfigError
from balog.common.stats import StatSample
from balog.delivery.spool import Spool, SpoolConfig
from balog.delivery.stats import SinkStats
from balog.delivery.sync_window import tick_of
from balog.delivery.worker import SinkWorker
from balog.sinks.base import Delivery, SinkConfig


class Dispatcher:
    """Delivers each event to every sink whose ``where`` matches it.

    - A sink that fails gets the same events again, according to its ``retry``.
    - An event that a sink refuses for good becomes a dead letter. A batch that is refused as a whole is halved until
      the refused events are found.
    - Memory is bounded: 16 MiB of encoded events per sink.
    - With a spool, events that a sink does not take in time are written to disk within the spool's window, and
      delivered from there in order. Without a spool, or when it is full, new events are dropped for that sink and
      counted.
    - A notice about a failure is sent once until the sink recovers, and at most every 30 seconds.

    Thread-safe::

        dispatcher = Dispatcher(config.sinks, notify=print, spool=config.spool)
        dispatcher.put(Delivery(event, encode(event)))
        stats = dispatcher.close(deadline=10)

    Args:
        configs: the sinks; they are built here and opened by their workers.
        notify: takes one line for people, such as the first failure of a sink.
        put_timeout: seconds, in all, that ``put`` may wait for room at one sink instead of dropping the event; never
            for a sink that fails, or has taken nothing for a second.
        spool: where events wait on disk.
        on_progress: called by worker threads when ``durable`` may have grown.

    Raises:
        ConfigError: a sink or the spool can't be built; ``path`` names it.
    """

    def __init__(
        self,
        configs: Sequence[SinkConfig],
        notify: Callable[[str], None],
        put_timeout: float = 0.0,
        *,
        spool: SpoolConfig | None = None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._notify = notify
        self._put_timeout = put_timeout
        self._on_progress = on_progress
        self._spool = Spool(spool) if spool is not None else None
        self._putting = threading.RLock()
        self._position = 0
        self._wake = threading.Event()
        self._is_closed = False
        self._workers: tuple[SinkWorker, ...] = tuple(
            self._build(config, number) for number, config in enumerate(configs)
        )
        for worker in self._workers:
            worker.start()
        self._spiller = threading.Thread(target=self._spill_regularly, name="balog spool", daemon=True)
        if self._spool is not None:
            self._spiller.start()

    @property
    def position(self) -> int:
        """The number of the last event that was put, counted from 1."""
        return self._position

    @property
    def durable(self) -> int:
        """The number up to which every event is safe at every sink: delivered, filtered or on disk.

        It never passes an event that was dropped.
        """
        return self._least(lambda worker: worker.queue.durable)

    @property
    def settled(self) -> int:
        """The number up to which no further attempt helps: every event is safe, or its sink has refused it for good."""
        return self._least(lambda worker: worker.queue.settled)

    def _least(self, number: Callable[[SinkWorker], int]) -> int:
        return min([self._position, *map(number, self._workers)])

    def put(self, delivery: Delivery) -> None:
        """Queue an event for every sink."""
        with self._putting:
            self._position = number = self._position + 1
            for worker in self._workers:
                worker.put(delivery, number)

    def sync(self) -> None:
        """Wait until every event that was put is on disk or delivered, if the spool's window is 0.

        If the disk refuses the events, they stay in memory, and a notice reports it.
        """
        if self._spool is not None and not self._spool.sync:
            for worker in self._workers:
                worker.spill_due(is_urgent=True)

    def stats(self) -> dict[str, SinkStats]:
        """Return the counters by sink name."""
        stats: dict[str, SinkStats] = {}
        for worker in self._workers:
            stats.setdefault(worker.name, SinkStats()).add(worker.stats())
        return stats

    def samples(self) -> Iterator[StatSample]:
        """Yield the counters of every sink."""
        for name, stats in self.stats().items():
            yield from stats.samples({"sink": name})

    def close(self, deadline: float) -> dict[str, SinkStats]:
        """Deliver the queued events, for at most ``deadline`` seconds over all sinks, spool the rest, and stop.

        Returns:
            The final counters by sink name; ``SinkStats.warnings`` describes them in lines.
        """
        until = time.monotonic() + deadline
        for worker in self._workers:
            worker.queue.drain(until)
        for worker in self._workers:
            worker.join()
        self._is_closed = True
        self._wake.set()
        return self.stats()

    def _build(self, config: SinkConfig, number: int) -> SinkWorker:
        try:
            return SinkWorker(
                config,
                self._notify,
                put_timeout=self._put_timeout,
                spool=self._spool.for_sink(config) if self._spool is not None else None,
                on_pressure=self._wake.set,
                on_progress=self._on_progress,
            )
        except ConfigError as error:
            raise ConfigError(
                error.reason, error.source, f"$.sinks[{number}]" + (error.path and f".{error.path}")
            ) from None

    def _spill_regularly(self) -> None:
        tick = tick_of(self._spool.sync if self._spool is not None else 0.0)
        while not self._is_closed:
            self._wake.wait(tick)
            self._wake.clear()
            for worker in self._workers:
                worker.spill_due()
