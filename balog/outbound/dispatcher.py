"""The dispatcher: hands each event to the workers of all sinks, so that a slow or failing sink delays no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from balog.errors import ConfigError
from balog.outbound.event_queue import NO_EVENT
from balog.outbound.spool import Spool, SpoolConfig
from balog.outbound.stats import SinkStats
from balog.outbound.sync_window import tick_of
from balog.outbound.worker import SinkWorker
from balog.sinks.base import Delivery, SinkConfig
from balog.stats import StatSample

RELOAD_SECONDS = 10.0
"""Seconds that a sink which a new config removes has to take its queued events."""


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

    Thread-safe, except that ``put`` and ``reload`` must not run at the same time::

        dispatcher = Dispatcher(config.sinks, notify=print, spool=config.spool)
        dispatcher.put(Delivery(event, encode(event)))
        stats = dispatcher.close(deadline=10)

    Args:
        configs: the sinks; they are built here and opened by their workers.
        notify: takes one line for people, such as the first failure of a sink.
        put_timeout: seconds, in all, that ``put`` may wait for room at one sink instead of dropping the event; never
            for a sink that fails, or has taken nothing for a second.
        spool: where events wait on disk.
        should_stop: asked every 0.1 s while ``put`` waits because the spool is full and its config says ``block``. If
            True, the wait ends, and the event is dropped and counted. It may call ``reload``.
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
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._notify = notify
        self._put_timeout = put_timeout
        self._should_stop = should_stop
        self._on_progress = on_progress
        self._spool = Spool(spool) if spool is not None else None
        self._putting = threading.RLock()
        self._position = 0
        self._wake = threading.Event()
        self._is_closed = False
        self._changing = threading.Lock()  # guards the following; never held while a worker is called
        self._workers: tuple[SinkWorker, ...] = tuple(
            self._build(config, number) for number, config in enumerate(configs)
        )
        self._retiring: tuple[tuple[SinkWorker, threading.Thread], ...] = ()
        self._retired: dict[str, SinkStats] = {}
        self._retired_durable = NO_EVENT
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
        return self._least(lambda worker: worker.durable)

    @property
    def settled(self) -> int:
        """The number up to which no further attempt helps: every event is safe, or its sink has refused it for good."""
        return self._least(lambda worker: worker.settled)

    def _least(self, number: Callable[[SinkWorker], int]) -> int:
        position = self._position
        with self._changing:
            workers, retired = (*self._workers, *(worker for worker, _ in self._retiring)), self._retired_durable
        return min([position, retired, *map(number, workers)])

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
                worker.sync()

    def stats(self) -> dict[str, SinkStats]:
        """Return the counters by sink name, including sinks that a reload removed."""
        found: dict[str, SinkStats] = {}
        with self._changing:
            total = {name: structs.replace(stats) for name, stats in self._retired.items()}
            workers = (*(worker for worker, _ in self._retiring), *self._workers)
        for worker in workers:
            found.setdefault(worker.name, SinkStats()).add(worker.stats())
        for name, stats in found.items():
            total.setdefault(name, SinkStats()).add_successor(stats)
        return total

    def samples(self) -> Iterator[StatSample]:
        """Yield the counters of every sink."""
        for name, stats in self.stats().items():
            yield from stats.samples({"sink": name})

    def reload(self, configs: Sequence[SinkConfig]) -> None:
        """Change the sinks between two events, without waiting. A sink whose config is unchanged goes on.

        Sinks that are removed have ``RELOAD_SECONDS`` to take their queued events. What is left then is spooled or,
        without a spool, counted as lost.

        Raises:
            ConfigError: a sink can't be built; nothing has changed.
        """
        rest = list(self._workers)
        workers: list[SinkWorker] = []
        new: list[SinkWorker] = []
        for number, config in enumerate(configs):
            same = next((worker for worker in rest if worker.config == config), None)
            if same is None:
                new.append(self._build(config, number))
                workers.append(new[-1])
            else:
                rest.remove(same)
                workers.append(same)
        with self._putting:
            for worker in new:
                worker.start(self._position)
            deadline = time.monotonic() + RELOAD_SECONDS
            for worker in rest:
                worker.retire(deadline)
            retiring = [(worker, threading.Thread(target=self._retire, args=(worker,), daemon=True)) for worker in rest]
            with self._changing:
                self._workers = tuple(workers)
                self._retiring += tuple(retiring)
        for _, thread in retiring:
            thread.start()

    def close(self, deadline: float) -> dict[str, SinkStats]:
        """Deliver the queued events, for at most ``deadline`` seconds over all sinks, spool the rest, and stop.

        Returns:
            The final counters by sink name; ``SinkStats.warnings`` describes them in lines.
        """
        until = time.monotonic() + deadline
        with self._changing:
            retiring, workers = self._retiring, self._workers
        for worker in (*workers, *(worker for worker, _ in retiring)):
            worker.drain(until)
        for worker in workers:
            worker.join()
        for _, thread in retiring:
            while thread.is_alive():  # a join without a timeout would not notice a second signal
                thread.join(1.0)
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
                should_stop=self._should_stop,
                on_pressure=self._wake.set,
                on_progress=self._on_progress,
            )
        except ConfigError as error:
            raise ConfigError(
                error.reason, error.source, f"$.sinks[{number}]" + (error.path and f".{error.path}")
            ) from None

    def _retire(self, worker: SinkWorker) -> None:
        worker.join()
        stats, durable = worker.stats(), worker.durable
        with self._changing:
            self._retiring = tuple(item for item in self._retiring if item[0] is not worker)
            self._retired.setdefault(worker.name, SinkStats()).add_successor(stats)
            self._retired_durable = min(self._retired_durable, durable)
            workers = self._workers
        for other in workers:
            other.adopt_soon()  # it may be the same sink with other options, and can adopt what was just spooled

    def _spill_regularly(self) -> None:
        tick = tick_of(self._spool.sync if self._spool is not None else 0.0)
        while not self._is_closed:
            self._wake.wait(tick)
            self._wake.clear()
            with self._changing:
                workers = (*self._workers, *(worker for worker, _ in self._retiring))
            for worker in workers:
                worker.spill_due()
