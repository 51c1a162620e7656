"""Forwarding: each sink is a consumer of a topic, so that events reach it with the guarantees that handlers have.

The topic is the spool: what a sink does not take yet stays there, leased and unacked, and comes again when the process
dies. What is wrong with an event makes it a dead letter, what is wrong with the other side is waited out.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from balog.consumers.consumer import Consumer
from balog.consumers.hub import ConsumerHub
from balog.consumers.outlet import Outlet
from balog.errors import BalogError, ConfigError
from balog.event import Event
from balog.expressions import Expression
from balog.outbound.attempt import reason_of
from balog.outbound.spool import sink_folder
from balog.signals import signals_for_main_thread
from balog.sinks import SinkConfig, TopicSinkConfig
from balog.topics import local_folder

__all__ = ["Forwarding", "SinkConsumer"]

JOIN_SECONDS = 5.0
"""How long closing waits for a sink that is being opened."""

_MAX_NAME = 180


class SinkConsumer(Consumer):
    """A sink in the place of a handler: it takes batches, one at a time.

    Args:
        config: the sink's; it is built here, and opened by ``outlet.open`` or the first batch.
        topic: what it is fed from.
        name: its name as a consumer.
        say: takes one line for people.

    Raises:
        ConfigError: the sink can't be built, or its ``where`` is no expression; ``path`` is the field.
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
        self.outlet = Outlet(config, say, is_owned=True)
        self._say = say

    def take(self, settings: object, events: Sequence[Event]) -> None:
        """Deliver a batch, see ``ConsumerOperator``; raises what ``Outlet.send`` raises."""
        self.outlet.send(events)

    def close(self) -> None:
        """Close the sink; what it can't finish is told. Again does nothing."""
        try:
            self.outlet.close()
        except Exception as error:
            self._say(f"{self.outlet.name}: {reason_of(error)}")


class Forwarding:
    """The sinks of a config as the consumers of one topic: a hub for an engine. As a context: open, then closed.

    Args:
        configs: the sinks.
        url: the topic's home.
        topic: its name.
        say: takes one line for people, such as a sink's first failure.

    Raises:
        ConfigError: no sinks, one that can't be built, or that is the topic itself; ``path`` says which.
    """

    def __init__(self, configs: Sequence[SinkConfig], url: str, topic: str, say: Callable[[str], None]) -> None:
        if not configs:
            raise ConfigError("no sinks, so there is nowhere to forward to", path="$.sinks")
        self.hub = ConsumerHub()
        self.sinks: list[SinkConsumer] = []
        self._end = threading.Event()
        self._opener: threading.Thread | None = None
        for number, (config, name) in enumerate(zip(configs, _names(configs))):
            place = f"$.sinks[{number}]"
            if isinstance(config, TopicSinkConfig) and config.topic == topic and _is_same_place(config.url, url):
                raise ConfigError("is the topic that is forwarded; its events would go round without end", path=place)
            self.sinks.append(_at(place, SinkConsumer, config, topic, name, say))
            self.hub.add(self.sinks[-1])

    def __enter__(self) -> Forwarding:
        """Open the sinks; those whose other side is not there are tried again in a thread, until their first batch.

        Raises:
            SinkError: a sink can't be opened, and trying again can't help.
        """
        try:
            waits = [sink.outlet.open() for sink in self.sinks]
        except BaseException:
            self._close()
            raise
        if any(waits):
            self._opener = threading.Thread(target=self._keep_opening, name="balog forward", daemon=True)
            with signals_for_main_thread():
                self._opener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._opener is not None:
            self._opener.join(JOIN_SECONDS)
        self._close()

    def _keep_opening(self) -> None:
        wait = 0.0
        while not self._end.wait(wait):
            shut = [sink for sink in self.sinks if not sink.outlet.is_open]
            if not shut:
                return
            waits = []
            for sink in shut:
                with suppress(BalogError):  # it was told, and its events wait
                    waits.append(sink.outlet.open())
            wait = max(0.05, min(waits, default=1.0))

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
    """Name the sinks as consumers: by their own names where those tell them apart, else by what they are made of.

    Dead letters and the ledger know a consumer by its name, so it must not hang on the place in the config.
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


def _at(place: str, build: Callable[..., SinkConsumer | Expression], *arguments: object) -> SinkConsumer:
    """Build something; a refusal says where in the config."""
    try:
        return build(*arguments)  # type: ignore[return-value]
    except ConfigError as error:
        inner = error.path.removeprefix("$").removeprefix(".")
        raise ConfigError(error.reason, error.source, ".".join(part for part in (place, inner) if part)) from None
