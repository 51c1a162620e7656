"""Filters that the service runs: derive a topic from others, with each event once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from balog.common.errors import ConfigError
from balog.consumers.forwarder import SinkConsumer
from balog.consumers.outcomes import PartialFailure
from balog.event import Event
from balog.filters.event_filter import EventFilter
from balog.service.document import ControlDocument, Filter
from balog.service.jobs.engine_job import EngineJob
from balog.sinks import Batching
from balog.sinks.topic import TopicSinkConfig
from balog.topics.base import DEFAULT_LEASE

BATCH = Batching(events=1000, age=0.05)


def make_selection(config: Filter) -> EventFilter:
    """Compile the selection of a filter.

    Raises:
        ConfigError: an invalid expression or combination of members; ``path`` names the member.
    """
    return EventFilter(config.name, config.where, config.select, config.cls_type, config.version)


class FilterJob(EngineJob):
    """A running filter. An event is acknowledged in its source once its result is durable in ``to``.

    The consumer group is ``filter.NAME``. An event that ``to`` can never store becomes a dead letter of its source. In
    a backend that keeps ids (see :class:`balog.topics.Topic`), no event is stored twice, even if the job is killed. In
    others, events in flight at the kill may be stored twice with the same id.

    Args:
        config: the filter.
        topics_url: URL of its topics.
        say: prints one line for the operator.
        lease: seconds until events are available again after the process died.

    Raises:
        ConfigError: a problem that ``filter_problems`` finds; ``path`` is the filter's member.
    """

    def __init__(
        self, config: Filter, topics_url: str, say: Callable[[str], None], *, lease: float = DEFAULT_LEASE
    ) -> None:
        super().__init__("filter", config.name, topics_url, say, batch=BATCH.events, lease=lease)
        if config.to in config.sources:
            raise ConfigError("is a topic that the filter reads; its events would circulate forever", path="to")
        self._config = config
        self._selection = make_selection(config)

    def consumers(self) -> Sequence[SinkConsumer]:
        """Return a consumer for each source, with the source's name."""
        return [_Source(self._config, self._selection, topic, self._url, self.report) for topic in self._config.sources]


class _Source(SinkConsumer):
    """Publishes the selected and changed events of one source."""

    def __init__(
        self, config: Filter, selection: EventFilter, topic: str, topics_url: str, say: Callable[[str], None]
    ) -> None:
        sink = TopicSinkConfig(url=topics_url, topic=config.to, where=config.where, batch=BATCH)
        super().__init__(sink, topic, topic, say)
        self._selection = selection

    def take(self, settings: object, events: Sequence[Event]) -> None:
        """Publish a batch. Errors name the ids of the received events."""
        new_events = [self._selection.make(event) for event in events]
        try:
            self.adapter.send(new_events)
        except PartialFailure as failure:
            came = {after.header.id: before.header.id for before, after in zip(events, new_events)}
            raise PartialFailure({came[id]: why for id, why in failure.failed.items()}) from None


def filter_problems(document: ControlDocument) -> Iterator[ConfigError]:
    """Yield the problems of a document's filters, each with its path in the document.

    Problems are invalid expressions, and cycles of filters, including those that Spark runs.
    """
    filters = document.filters
    for number, config in enumerate(filters):
        path = f"$.filters[{number}]"
        try:
            make_selection(config)
        except ConfigError as error:
            yield ConfigError(error.reason, path=f"{path}.{error.path}")
    graph: dict[str, list[str]] = {}
    for config in filters:
        graph.setdefault(config.to, []).extend(config.sources)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        number = next(n for n, job in enumerate(filters) if job.to in circle and not {*circle}.isdisjoint(job.sources))
        yield ConfigError(f"its events would circulate forever: {' → '.join(circle)}", path=f"$.filters[{number}].to")
