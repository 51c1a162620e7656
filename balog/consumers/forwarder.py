"""The forwarder: each sink is a consumer of a topic, with the guarantees of handlers.

The topic is the spool: events that a sink does not accept yet stay there, leased and unacked, and are delivered again
when the process dies. A rejected event becomes a dead letter; an outage of the target is waited out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from balog.common.errors import ConfigError
from balog.common.stats import StatSample
from balog.consumers.consumer import Consumer
from balog.consumers.hub import ConsumerHub
from balog.consumers.sink_adapter import SinkAdapter
from balog.delivery.attempt import reason_of
from balog.delivery.spool import sink_folder
from balog.event import Event
from balog.filters import Expression
from balog.sinks import SinkConfig
from balog.sinks.topic import TopicSinkConfig
from balog.topics import local_folder

_MAX_NAME = 180


class SinkConsumer(Consumer):
    """A consumer whose handler is a sink, which gets one batch at a time.

    Args:
        config: the sink's config. The sink is built here, and opened by ``adapter.open`` or the first batch.
        topic: the topic to read.
        name: its name as a consumer.
        say: called with one line for the operator.

    Raises:
        ConfigError: the sink can't be built, or its ``where`` is not an expression; ``path`` is the field.
    """

    def __init__(self, config: SinkConfig, topic: str, name: str, say: Callable[[str], None]) -> None:
        if config.where is not None:
            _at("where", Expression, config.where)
        batch, retry = config.batch, config.retry
        super().__init__(
            self.take,
            topic,
            name=name,
            where=config.where,
            batch=(batch.events, max(batch.age, 0.001)),
            backoff=(retry.first, max(retry.first, retry.longest)),
            concurrency=1,
        )
        self.adapter = SinkAdapter(config, say, is_owned=True)
        self._say = say

    @property
    def error(self) -> str:
        """Why the sink's target fails, in one line; "" while it works."""
        return self.adapter.error

    def take(self, settings: object, events: Sequence[Event]) -> None:
        """Deliver a batch: the handler. Raises the exceptions of ``SinkAdapter.send``."""
        self.adapter.send(events)

    def samples(self) -> Iterator[StatSample]:
        """Yield the sink's counters."""
        return self.adapter.stats.samples({"sink": self.name})

    def close(self) -> None:
        """Close the sink and report an error in a line. A second call does nothing."""
        try:
            self.adapter.close()
        except Exception as error:
            self._say(f"{self.adapter.name}: {reason_of(error)}")


class Forwarder:
    """The sinks of a config as the consumers of one topic, in a hub for an engine. Use it as a context around the run.

    Args:
        configs: the sinks.
        url: the topic's backend.
        topic: its name.
        say: called with one line for the operator, such as a sink's first failure.

    Raises:
        ConfigError: no sinks, a sink that can't be built, or one that is the topic itself; ``path`` is the sink.
    """

    def __init__(self, configs: Sequence[SinkConfig], url: str, topic: str, say: Callable[[str], None]) -> None:
        if not configs:
            raise ConfigError("no sinks, so there is nowhere to forward to", path="$.sinks")
        self.hub = ConsumerHub()
        self.sinks: list[SinkConsumer] = []
        for number, (config, name) in enumerate(zip(configs, _names(configs))):
            path = f"$.sinks[{number}]"
            if isinstance(config, TopicSinkConfig) and config.topic == topic and _is_same_place(config.url, url):
                raise ConfigError("is the topic that is forwarded; its events would go round without end", path=path)
            self.sinks.append(_at(path, SinkConsumer, config, topic, name, say))
            self.hub.add(self.sinks[-1])

    def __enter__(self) -> Forwarder:
        """Open the sinks. Those whose target can't be reached are opened with their first batch.

        Raises:
            SinkError: a sink can't be opened, and a retry can't help.
        """
        try:
            for sink in self.sinks:
                sink.adapter.open()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        for sink in self.sinks:
            sink.close()


def _is_same_place(first: str, second: str) -> bool:
    """Return whether two URLs of topics are equal, or lead to the same folder."""
    if first == second:
        return True
    try:
        folders = [local_folder(first), local_folder(second)]
    except ConfigError:  # building the sink reports it with its place
        return False
    return None not in folders and len({os.path.realpath(folder) for folder in folders if folder}) == 1


def _names(configs: Sequence[SinkConfig]) -> list[str]:
    """Return the sinks' names as consumers: their own names, with a hash of the target where several are equal.

    Dead letters and the ledger identify a consumer by its name, so the name must not depend on the order in the config.
    """
    named = [config.name[:_MAX_NAME] for config in configs]
    plain = [
        name if named.count(name) == 1 else f"{name} {sink_folder(config)[-12:]}"
        for name, config in zip(named, configs)
    ]
    twice = next((number for number, name in enumerate(plain) if name in plain[:number]), None)
    if twice is not None:
        raise ConfigError("is there twice; join the two, with OR between their wheres", path=f"$.sinks[{twice}]")
    return plain


def _at(path: str, build: Callable[..., SinkConsumer | Expression], *arguments: object) -> SinkConsumer:
    """Call ``build``; add the path in the config to its ConfigError."""
    try:
        return build(*arguments)  # type: ignore[return-value]
    except ConfigError as error:
        inner = error.path.removeprefix("$").removeprefix(".")
        raise ConfigError(error.reason, error.source, ".".join(part for part in (path, inner) if part)) from None
