"""Feeding sinks: each has a lane of its own, so that a slow or dead one holds up nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from msgspec import structs

from balog.errors import ConfigError
from balog.outbound.spool import Spool, SpoolConfig
from balog.outbound.stats import Figures
from balog.outbound.sync_window import tick_of
from balog.outbound.worker import NO_NUMBER, Lane
from balog.sinks.base import Delivery, SinkConfig

__all__ = ["Dispatcher"]

RELOAD_SECONDS = 10.0
"""How long a sink that a new config leaves out has to take what is queued for it."""


class Dispatcher:
    """Hands each event to every sink whose ``where`` it fits.

    A sink that fails gets what it did not take again, as its ``retry`` says. An event that it refuses for good becomes
    a dead letter; a batch that it refuses whole is narrowed down first. Memory stays bounded: 16 MiB of events for a
    sink, which wait as bytes, a quarter of what they take decoded. With a spool, what a sink does not take in time
    goes to disk, within the window of the spool's config, and from there, in order, to the sink. Without one, or when
    it is full, new events are dropped for that sink and counted. Trouble is said once until the sink takes events
    again, and not more often than every 30 s.

    Any thread may call; ``put`` and ``reload`` one at a time.

    Args:
        configs: the sinks; they are built here and opened by their threads.
        say: takes one line for people, such as a sink's first failure.
        patience: seconds, in all, that a caller may be made to wait for room at one sink that works, rather than
            drop; never for one that fails, or has taken nothing for a second.
        spool: where events wait on disk.
        should_stop: asked every 0.1 s while ``put`` waits because the spool is full and its config says ``block``;
            True ends the waiting, and the event is dropped and counted. It may call ``reload``.
        on_progress: called, by threads of the sinks, when ``durable`` may have grown.

    Raises:
        ConfigError: a sink or the spool cannot be built; ``path`` says which.
    """

    def __init__(
        self,
        configs: Sequence[SinkConfig],
        say: Callable[[str], None],
        patience: float = 0.0,
        *,
        spool: SpoolConfig | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._say = say
        self._patience = patience
        self._should_stop = should_stop
        self._on_progress = on_progress
        self._spool = Spool(spool) if spool is not None else None
        self._putting = threading.RLock()
        self._position = 0
        self._wake = threading.Event()
        self._is_closed = False
        self._changing = threading.Lock()  # for what follows; never held while a lane is asked
        self._lanes: tuple[Lane, ...] = tuple(self._build(config, number) for number, config in enumerate(configs))
        self._leaving: tuple[tuple[Lane, threading.Thread], ...] = ()
        self._gone: dict[str, Figures] = {}
        self._gone_durable = NO_NUMBER
        for lane in self._lanes:
            lane.start()
        self._keeper = threading.Thread(target=self._keep, name="balog spool", daemon=True)
        if self._spool is not None:
            self._keeper.start()

    @property
    def position(self) -> int:
        """The number of the last event that was put; they are counted from 1."""
        return self._position

    @property
    def durable(self) -> int:
        """The number up to which every event is safe at every sink: delivered, left out, or on disk.

        An event that was dropped never is, nor is one after it.
        """
        position = self._position
        with self._changing:
            lanes, gone = (*self._lanes, *(lane for lane, _ in self._leaving)), self._gone_durable
        return min([position, gone, *(lane.durable for lane in lanes)])

    def put(self, delivery: Delivery) -> None:
        """Queue an event for every sink."""
        with self._putting:
            self._position = number = self._position + 1
            for lane in self._lanes:
                lane.put(delivery, number)

    def sync(self) -> None:
        """Return when every event that was put is on disk or delivered, if the spool's window is 0; else at once.

        Where the disk refuses, the events stay in memory, and a line for people says so.
        """
        if self._spool is not None and not self._spool.sync:
            for lane in self._lanes:
                lane.sync()

    def figures(self) -> dict[str, Figures]:
        """Count, by the names of the sinks; those that a reload left out are still there."""
        found: dict[str, Figures] = {}
        with self._changing:
            gone = {name: structs.replace(figures) for name, figures in self._gone.items()}
            lanes = (*(lane for lane, _ in self._leaving), *self._lanes)
        for lane in lanes:
            found.setdefault(lane.name, Figures()).add(lane.figures())
        for name, figures in found.items():
            gone.setdefault(name, Figures()).go_on(figures)
        return gone

    def reload(self, configs: Sequence[SinkConfig]) -> None:
        """Change the sinks between two events. A sink whose config is as it was is not touched.

        What is queued for the others is delivered to them as they were, for at most ``RELOAD_SECONDS``, and then
        spooled or, without a spool, counted as not delivered. Nothing waits for that.

        Raises:
            ConfigError: a sink cannot be built; nothing has changed then.
        """
        rest = list(self._lanes)
        lanes: list[Lane] = []
        new: list[Lane] = []
        for number, config in enumerate(configs):
            same = next((lane for lane in rest if lane.config == config), None)
            if same is None:
                new.append(self._build(config, number))
                lanes.append(new[-1])
            else:
                rest.remove(same)
                lanes.append(same)
        with self._putting:
            for lane in new:
                lane.start(self._position)
            until = time.monotonic() + RELOAD_SECONDS
            for lane in rest:
                lane.leave(until)
            leaving = [(lane, threading.Thread(target=self._see_off, args=(lane,), daemon=True)) for lane in rest]
            with self._changing:
                self._lanes = tuple(lanes)
                self._leaving += tuple(leaving)
        for _, thread in leaving:
            thread.start()

    def close(self, deadline: float) -> dict[str, Figures]:
        """Deliver what is queued, for at most ``deadline`` seconds over all sinks, spool the rest, and stop.

        Returns:
            How it ended, by the names of the sinks; ``Figures.troubles`` says it in lines.
        """
        until = time.monotonic() + deadline
        with self._changing:
            leaving, lanes = self._leaving, self._lanes
        for lane in (*lanes, *(lane for lane, _ in leaving)):
            lane.drain(until)
        for lane in lanes:
            lane.finish()
        for _, thread in leaving:
            while thread.is_alive():  # a wait without an end would not hear of a second signal
                thread.join(1.0)
        self._is_closed = True
        self._wake.set()
        return self.figures()

    def _build(self, config: SinkConfig, number: int) -> Lane:
        try:
            return Lane(
                config,
                self._say,
                patience=self._patience,
                spool=self._spool.lane(config) if self._spool is not None else None,
                should_stop=self._should_stop,
                press=self._wake.set,
                on_progress=self._on_progress,
            )
        except ConfigError as error:
            raise ConfigError(
                error.reason, error.source, f"$.sinks[{number}]" + (error.path and f".{error.path}")
            ) from None

    def _see_off(self, lane: Lane) -> None:
        lane.finish()
        figures, durable = lane.figures(), lane.durable
        with self._changing:
            self._leaving = tuple(item for item in self._leaving if item[0] is not lane)
            self._gone.setdefault(lane.name, Figures()).go_on(figures)
            self._gone_durable = min(self._gone_durable, durable)
            lanes = self._lanes
        for other in lanes:
            other.look()  # it may be the same sink, fed in another way, and can have what was spooled just now

    def _keep(self) -> None:
        """Spool what is due, in a thread that no sink can hold up."""
        tick = tick_of(self._spool.sync if self._spool is not None else 0.0)
        while not self._is_closed:
            self._wake.wait(tick)
            self._wake.clear()
            with self._changing:
                lanes = (*self._lanes, *(lane for lane, _ in self._leaving))
            for lane in lanes:
                lane.keep()
