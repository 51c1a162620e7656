"""What the benchmarks of acting share: events, an engine with a handler that does nothing, a table of rates."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from balog.consumers import Consumer, ConsumerHub, Engine, EngineStats
from balog.consumers.hooks import Hook
from balog.event import Event, encode
from balog.topics import Message, Received, Topic
from benchmarks.measure import medians

__all__ = [
    "TOPIC",
    "Stopwatch",
    "Took",
    "UntilAcked",
    "Way",
    "alternate",
    "check",
    "hub_of",
    "messages",
    "publish",
    "rates",
    "told_to_nobody",
]

TOPIC = "bench"
PUBLISHED_AT_ONCE = 1000


class Took(NamedTuple):
    """Seconds of the clock, and seconds of this process's processor time; a median knows the clocks of its rounds."""

    wall: float
    cpu: float
    rounds: tuple[float, ...] = ()


Way = Callable[[], Took]


def event(number: int) -> Event:
    """Make an event of some 400 bytes, as a tap logs them."""
    metric = {"type": "counter", "metric": "record_count", "value": number, "tags": {"stream": "orders"}}
    context = {"fqdn": "host.example.com", "application": "tap-shop", "process": 4711, "run_id": "a1b2c3d4"}
    return Event.new("tap_shop.sync.metric", {"cls_type": "metric", "version": "1.0.0", **metric}, context=context)


def messages(number: int) -> list[Message]:
    """Make so many events, encoded as a logger's output hands them to a topic."""
    events = map(event, range(number))
    return [Message(event.header.id, encode(event)) for event in events]


def publish(topic: Topic, some: Sequence[Message]) -> None:
    """Publish durably, some at once."""
    for first in range(0, len(some), PUBLISHED_AT_ONCE):
        topic.publish(some[first : first + PUBLISHED_AT_ONCE])


def hub_of(handler: Callable[..., object]) -> ConsumerHub:
    """Give a hub with one consumer, which wants every metric."""
    hub = ConsumerHub()
    hub.add(Consumer(handler, TOPIC, "metric", ">=0.1", name="bench"))
    return hub


def check(counts: EngineStats, number: int) -> None:
    """Make sure that an engine did what is timed."""
    assert (counts.succeeded, counts.failed, counts.dead) == (number, 0, 0), counts


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Took:
        return Took(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def alternate(ways: dict[str, Way], rounds: int) -> dict[str, Took]:
    """Give each way's medians, of rounds that ask each of them once; of several rounds, a first one does not count."""
    walls: dict[str, list[float]] = {name: [] for name in ways}
    cpus: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(0 if rounds > 1 else 1, rounds + 1):
        for name, way in ways.items():
            took = way()
            if number:
                walls[name].append(took.wall)
                cpus[name].append(took.cpu)
    wall, cpu = medians(walls), medians(cpus)
    return {name: Took(wall[name], cpu[name], tuple(walls[name])) for name in ways}


def rates(found: dict[str, Took], events: int, base: str) -> Iterator[str]:
    """Give the lines of a table: events a second, how many times the base's that is, µs of processor time an event."""
    yield f"{'':<32} {'events/s':>9} {'× ' + base:>28} {'CPU µs/event':>13}"
    for name, took in found.items():
        ratio = found[base].wall / took.wall
        yield f"{name:<32} {events / took.wall:>9,.0f} {ratio:>28.2f} {took.cpu / events * 1e6:>13.1f}"


@contextmanager
def told_to_nobody() -> Iterator[None]:
    """Have what an engine logs formatted and written, as for anybody who runs one, to where nobody reads it."""
    with open(os.devnull, "w") as nowhere:
        handler = logging.StreamHandler(nowhere)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        log: Any = logging.getLogger("balog.consumers")
        log.addHandler(handler)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.propagate = True


class UntilAcked(Hook):
    """The clock of an engine: from the first message that came to the last one's ack; then it stops the engine."""

    def __init__(self, number: int) -> None:
        self.took: Took | None = None
        self._number = number
        self._acked = 0
        self._watch: Stopwatch | None = None
        self._engine: Engine | None = None

    def run(self, engine: Engine) -> Took:
        """Run an engine that has this hook."""
        self._engine = engine
        check(engine.run(), self._number)
        assert self.took is not None
        return self.took

    def after_receive(self, topic: str, received: Sequence[Received]) -> None:
        if received and self._watch is None:
            self._watch = Stopwatch()

    def after_ack(self, topic: str, received: Sequence[Received]) -> None:
        self._acked += len(received)
        if self._acked >= self._number and self._watch is not None and self._engine is not None:
            self.took = self._watch.read()
            self._engine.stop()
