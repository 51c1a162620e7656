"""Filters in the service: a topic that is made of others, each event of it there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from balog.consumers.forwarder import SinkConsumer
from balog.consumers.outcomes import PartialFailure
from balog.delivery.document import ControlDocument, Filter
from balog.delivery.jobs.engine_job import EngineJob
from balog.errors import ConfigError
from balog.event import Event
from balog.expressions.event_filter import EventFilter
from balog.sinks import Batching, TopicSinkConfig
from balog.topics.base import DEFAULT_LEASE

__all__ = ["FilterJob", "check_filters", "make_selection"]

BATCH = Batching(events=1000, age=0.05)


def make_selection(config: Filter) -> EventFilter:
    """Return what a filter takes and makes.

    Raises:
        ConfigError: an expression that is none, or members that don't fit together; ``path`` says which.
    """
    return EventFilter(config.name, config.where, config.select, config.cls_type, config.version)


class FilterJob(EngineJob):
    """A filter at work. An event is acked in its source once what became of it is durable in ``to``.

    The group is ``filter.NAME``; an event that ``to`` can't take, such as one that is too large for it, becomes a dead
    letter of its source. Where a home keeps ids (see :class:`balog.topics.Topic`) nothing is there twice, however often
    the job is killed and started; elsewhere what was under way may be, with the same id.

    Args:
        config: the filter.
        home_url: the home of its topics.
        say: takes one line for people.
        lease: seconds that events stay with this job when its process dies.

    Raises:
        ConfigError: what ``check_filters`` finds; ``path`` is the filter's member.
    """

    def __init__(
        self, config: Filter, topics_url: str, say: Callable[[str], None], *, lease: float = DEFAULT_LEASE
    ) -> None:
        super().__init__("filter", config.name, topics_url, say, batch=BATCH.events, lease=lease)
        if config.to in config.sources:
            raise ConfigError("is a topic that the filter reads; its events would go round without end", path="to")
        self._config = config
        self._selection = make_selection(config)

    def consumers(self) -> Sequence[SinkConsumer]:
        """Return one of each source, called as the source."""
        return [_Source(self._config, self._selection, topic, self._url, self.report) for topic in self._config.sources]


class _Source(SinkConsumer):
    """Takes batches of one source and publishes what becomes of them."""

    def __init__(
        self, config: Filter, selection: EventFilter, topic: str, topics_url: str, say: Callable[[str], None]
    ) -> None:
        sink = TopicSinkConfig(url=topics_url, topic=config.to, where=config.where, batch=BATCH)
        super().__init__(sink, topic, topic, say)
        self._selection = selection

    def take(self, settings: object, events: Sequence[Event]) -> None:
        """Publish a batch; raises what ``SinkAdapter.send`` raises, of the events that came."""
        made = [self._selection.make(event) for event in events]
        try:
            self.adapter.send(made)
        except PartialFailure as failure:
            came = {after.header.id: before.header.id for before, after in zip(events, made)}
            raise PartialFailure({came[id]: why for id, why in failure.failed.items()}) from None


@dataclass(frozen=True)
class _Edge:
    """A way that events take, from topic to topic."""

    source: str
    to: str
    number: int


def check_filters(document: ControlDocument) -> list[ConfigError]:
    """Return all that is wrong with a document's filters, each with its path in the document.

    Names that are there twice, expressions that are none, a topic named twice as a source, and filters whose events
    would come back to where they came from, by one filter or through several, whoever runs them.
    """
    return list(_problems(document.filters))


def _problems(filters: Sequence[Filter]) -> Iterator[ConfigError]:
    names: set[str] = set()
    for number, config in enumerate(filters):
        place = f"$.filters[{number}]"
        if config.name in names:
            yield ConfigError(f"there are two filters {config.name!r}; rename one", path=f"{place}.name")
        names.add(config.name)
        twice = next((at for at, topic in enumerate(config.sources) if topic in config.sources[:at]), None)
        if twice is not None:
            yield ConfigError("is there twice", path=f"{place}.sources[{twice}]")
        try:
            make_selection(config)
        except ConfigError as error:
            yield ConfigError(error.reason, path=f"{place}.{error.path}")
    edges = [_Edge(source, config.to, number) for number, config in enumerate(filters) for source in config.sources]
    reported: set[int] = set()
    for edge in edges:
        path = _find_cycle(edge, edges)
        if path is None or edge.number in reported:
            continue
        reported |= {step.number for step in path}  # a circle is told of once, at the first filter in it
        shown = " → ".join([path[0].source, *(step.to for step in path)])
        yield ConfigError(f"its events would go round without end: {shown}", path=f"$.filters[{edge.number}].to")


def _find_cycle(first: _Edge, edges: Sequence[_Edge]) -> list[_Edge] | None:
    """Return a shortest way that begins with an edge and ends where that begins; None when there is none."""
    paths = [[first]]
    seen = {first.to}
    while paths:
        path = paths.pop(0)
        if path[-1].to == first.source:
            return path
        for edge in edges:
            if edge.source == path[-1].to and edge.to not in seen:
                seen.add(edge.to)
                paths.append([*path, edge])
    return None
