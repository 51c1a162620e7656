"""Forwarding: each sink is a consumer of a topic, so that events reach it with the guarantees that handlers have.

The topic is the spool: what a sink does not take yet stays there, leased and unacked, and comes again when the process
dies. What is wrong with an event makes it a dead letter, what is wrong with the other side is waited out.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from balog.consumers.consumer import Consumer
from balog.consumers.hub import ConsumerHub
from balog.consumers.outcomes import PartialFailure, Reject, Retry
from balog.errors import ConfigError
from balog.event import Event, encode
from balog.expressions import Expression
from balog.signals import signals_for_main_thread
from balog.sinks import Delivery, SinkConfig, SinkError, TopicSinkConfig
from balog.sinks.attempt import as_sink_error, attempt, reason_of
from balog.sinks.news import News
from balog.sinks.spool import lane_folder

__all__ = ["Forwarding", "SinkConsumer", "SinkCounts"]

CLOSE_SECONDS = 5.0
"""How long closing waits for a sink that is at work; then it is left behind, and its events come again."""

_MAX_NAME = 180


class SinkCounts(Struct):
    """What one sink did: events that it took, and that it refused for good; ``retries`` are tries that failed."""

    delivered: int = 0
    refused: int = 0
    retries: int = 0


class SinkConsumer(Consumer):
    """A sink in the place of a handler: it takes batches, one at a time.

    While the other side is down, what comes is put off until the next try is due, without asking it again, so that a
    thousand waiting events are not a thousand requests.

    Args:
        config: the sink's; it is built here, and opened by ``open`` or the first batch.
        topic: what it is fed from.
        name: its name as a consumer.
        say: takes one line for people.

    Raises:
        ConfigError: the sink can't be built, or its ``where`` is no expression; ``path`` is the field.
    """

    def __init__(self, config: SinkConfig, topic: str, name: str, say: Callable[[str], None]) -> None:
        if config.where is not None:
            _at("where", Expression, config.where)
        batch, self._retry = config.batch, config.retry
        super().__init__(
            self.take,
            topic,
            name=name,
            where=config.where,
            batch=(batch.events, max(batch.age, 0.001)),
            backoff=(self._retry.first, max(self._retry.first, self._retry.longest)),
            concurrency=1,
        )
        self.counts = SinkCounts()
        self._bytes = batch.bytes
        self._sink = config.build()
        self._news = News(config.name, say)
        self._working = threading.RLock()  # a sink has one thread at a time
        self._is_open = self._is_closed = False
        self._trouble: SinkError | None = None
        self._pause = self._retry.first
        self._next_try = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the sink has been opened."""
        return self._is_open

    def open(self) -> float:
        """Open the sink if it is not, and give the seconds until another try is due: 0 when it is open.

        Raises:
            SinkError: trying again can't help.
        """
        with self._working:
            if self._is_open or self._is_closed:
                return 0.0
            if (wait := self._next_try - time.monotonic()) > 0:
                return wait
            error = self._open()
            if error is None:
                return 0.0
            if not error.retryable:
                raise error
            return self._put_off(error)

    def take(self, settings: object, events: Sequence[Event]) -> None:
        """Deliver a batch, see ``ConsumerOperator``.

        Raises:
            Retry: the other side is down, busy, or refuses who asks; nothing was delivered.
            PartialFailure: by event id: a ``Reject`` for what will never be taken, a ``Retry`` for what may be.
        """
        with self._working:
            wait = self._next_try - time.monotonic()
            if self._trouble is not None and wait > 0:
                raise Retry(reason_of(self._trouble), wait)
            if (error := self._open()) is not None:
                raise Retry(reason_of(error), self._put_off(error))
            failed: dict[str, str | BaseException] = {}
            batch = [Delivery(event, encode(event)) for event in events]
            parts = _parts(batch, self._bytes)
            for part in parts:
                # Each refused event is found, however many: one that was not tried alone is no dead letter.
                outcome = attempt(self._write, part, max_writes=2 * len(part))
                self.counts.delivered += outcome.taken
                self.counts.refused += len(outcome.dead)
                for index, reason in outcome.dead.items():
                    failed[part[index].event.header.id] = Reject(reason)
                if outcome.dead:
                    reason = next(iter(outcome.dead.values()))
                    self._news.once(f"{reason}; refused events become dead letters of the topic", about="refused")
                if outcome.taken:
                    self._recover()
                if outcome.left and outcome.error is not None:
                    pause = self._put_off(outcome.error)
                    left = [part[index] for index in outcome.left] + [one for part in parts for one in part]
                    reason = reason_of(outcome.error)
                    failed.update({event.header.id: Retry(reason, pause) for event, _ in left})
            if failed:
                raise PartialFailure(failed)

    def close(self) -> None:
        """Close the sink; one that hangs is left behind. Again does nothing."""
        was_closed, self._is_closed = self._is_closed, True
        if was_closed or not self._working.acquire(timeout=CLOSE_SECONDS):
            return
        try:
            self._sink.close()
        except Exception as error:
            self._news.tell(reason_of(error))
        finally:
            self._working.release()

    def _write(self, batch: Sequence[Delivery]) -> None:
        if self._is_closed:
            raise SinkError("it is being closed")
        self._sink.write(batch)

    def _open(self) -> SinkError | None:
        if not self._is_open:
            try:
                self._sink.open()
            except Exception as error:
                return as_sink_error(error)
            self._is_open = True
            self._recover()
        return None

    def _put_off(self, error: SinkError) -> float:
        """Note trouble at the other side; give the seconds until it is asked again."""
        pause = max(self._pause * random.uniform(0.5, 1.0), error.retry_after or 0.0)
        self._pause = min(self._pause * 2, self._retry.longest)
        self._next_try = time.monotonic() + pause
        self.counts.retries += 1
        was_well, self._trouble = self._trouble is None, error
        if was_well and self._news.is_due("trouble"):
            self._news.tell(f"{reason_of(error)}; trying again, its events stay in the topic")
        return pause

    def _recover(self) -> None:
        self._pause, self._next_try = self._retry.first, 0.0
        was_well, self._trouble = self._trouble is None, None
        if not was_well and self._news.was_told("trouble") and self._news.is_due("recovery"):
            self._news.tell("takes events again")


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
            if isinstance(config, TopicSinkConfig) and (config.url, config.topic) == (url, topic):
                raise ConfigError("is the topic that is forwarded; its events would go round without end", path=place)
            self.sinks.append(_at(place, SinkConsumer, config, topic, name, say))
            self.hub.add(self.sinks[-1])

    def __enter__(self) -> Forwarding:
        """Open the sinks; those whose other side is not there are tried again in a thread, until their first batch.

        Raises:
            SinkError: a sink can't be opened, and trying again can't help.
        """
        try:
            waits = [sink.open() for sink in self.sinks]
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
            self._opener.join(CLOSE_SECONDS)
        self._close()

    def _keep_opening(self) -> None:
        wait = 0.0
        while not self._end.wait(wait):
            shut = [sink for sink in self.sinks if not sink.is_open]
            if not shut:
                return
            waits = []
            for sink in shut:
                with suppress(SinkError):  # it was told, and its events wait
                    waits.append(sink.open())
            wait = max(0.05, min(waits, default=1.0))

    def _close(self) -> None:
        for sink in self.sinks:
            sink.close()


def _parts(batch: Sequence[Delivery], most: int) -> Iterator[list[Delivery]]:
    """Cut a batch by the bytes of its events, about; an event that is larger alone makes a part of its own."""
    part: list[Delivery] = []
    size = 0
    for delivery in batch:
        if part and size + len(delivery.body) > most:
            yield part
            part, size = [], 0
        part.append(delivery)
        size += len(delivery.body)
    if part:
        yield part


def _names(configs: Sequence[SinkConfig]) -> list[str]:
    """Name the sinks as consumers: by their own names where those tell them apart, else by what they are made of.

    Dead letters and the ledger know a consumer by its name, so it must not hang on the place in the config.
    """
    named = [config.name[:_MAX_NAME] for config in configs]
    plain = [
        name if named.count(name) == 1 else f"{name} {lane_folder(config)[-12:]}"
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
