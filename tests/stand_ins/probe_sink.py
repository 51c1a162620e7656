"""A sink that does as it is told, and its config."""

import threading

from msgspec import Struct

from balog.delivery import Dispatcher
from balog.event import Event, encode
from balog.sinks import Delivery, Retrying
from balog.sinks.base import SinkOptions

QUICK = Retrying(first=0.01, longest=0.05)


class Probe:
    """Takes batches; each outcome given is raised by one write, in turn."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.fails = None  # raised by every write
        self.refuses = lambda n: None  # gives why an event is bad, in a sink that refuses a batch whole
        self.taken = []
        self.batches = []
        self.opened = 0
        self.closed = 0
        self.gate = threading.Event()
        self.gate.set()

    def open(self):
        self.opened += 1

    def write(self, batch):
        self.gate.wait()
        numbers = [delivery.event.payload["n"] for delivery in batch]
        if self.fails is not None:
            raise self.fails
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if callable(outcome):
            outcome = outcome(self, numbers)
        if outcome is not None:
            raise outcome
        for number in numbers:
            if why := self.refuses(number):
                raise why
        self.taken += numbers
        self.batches.append(numbers)

    def close(self):
        self.closed += 1


SINKS: dict[str, Probe] = {}


class ProbeConfig(SinkOptions, Struct, tag_field="type", tag="probe", forbid_unknown_fields=True, kw_only=True):
    """Finds its sink by its place, so that it can be written to a file and read again."""

    place: str = "it"
    detail: str = ""

    @property
    def name(self):
        return f"probe {self.place}"

    def build(self):
        return SINKS[self.place]


def probe(*outcomes, place="it", **options):
    """Give a sink and a config that builds it."""
    SINKS[place] = sink = Probe(*outcomes)
    return sink, ProbeConfig(place=place, **options)


def deliveries(count, start=0, **payload):
    events = [Event.new("a", {"n": n, **payload}) for n in range(start, start + count)]
    return [Delivery(event, encode(event)) for event in events]


def send(dispatcher, count, start=0, **payload):
    for delivery in deliveries(count, start, **payload):
        dispatcher.put(delivery)


def started(said, count, *configs, start=0, **options):
    """Give a dispatcher that got so many events."""
    dispatcher = Dispatcher(configs, said.append, **options)
    send(dispatcher, count, start)
    return dispatcher


def close(dispatcher, deadline=10):
    """Close and give the stats of the only sink."""
    ((_, stats),) = dispatcher.close(deadline).items()
    assert balanced(stats)
    return stats


def balanced(stats):
    """Whether every event is accounted for, once."""
    out = stats.filtered + stats.delivered + stats.waiting + stats.spooled + stats.dead + stats.dropped
    return stats.put + stats.adopted == out
