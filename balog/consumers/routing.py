"""Routing: the handlers of a topic, and which of them want an event, fast for any number of consumers.

Events that a handler logs name its consumer as their cause, so that they never return to it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from balog.common.backoff import Backoff
from balog.common.errors import EventError, TopicError
from balog.consumers.conditions import Facts
from balog.consumers.consumer import BatchOptions, Consumer
from balog.event import Event, decode
from balog.filters import Expression
from balog.topics import Received, Topic
from balog.topics.base import uptime

_REMEMBERED = 4096
_LONGEST = 2000

_Test = Callable[[Event], bool]
_Placed = tuple[int, Consumer]
_Asked = tuple[_Test, list[_Placed]]


def causes(event: Event) -> list[str]:
    """Return the consumers whose handlers led to an event, from ``context.caused_by.consumers``; often none."""
    cause = event.header.context.get("caused_by")
    names = cause.get("consumers") if isinstance(cause, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _isolated(match_event: _Test, event: Event) -> bool:
    return copy_context().run(match_event, event)  # no event sees what it bound for another one


class ConsumerRouter:
    """Finds the consumers that want an event. Threads may share a router.

    - The fields that conditions read (type, versions, channel, level) have few different values in a topic, so the
      answer for each combination is cached.
    - Only ``where`` and an overridden ``match_event`` run for every event. Equal expressions run once, and of several
      that compare the same field with a text, only those with the event's text run.
    - No consumer in ``context.caused_by.consumers`` gets the event: its handler led to the event, and the two would go
      round without end. A ``MessageConsumer`` gets it even so.

    Args:
        consumers: the consumers of one topic.
    """

    def __init__(self, consumers: Sequence[Consumer]) -> None:
        ordered = sorted(consumers, key=lambda consumer: consumer.name)
        self._consumers = [(consumer, consumer.matches_its_own_way) for consumer in ordered]
        plain = [consumer.conditions for consumer, is_own in self._consumers if not is_own]
        self._head = any(conditions.reads_head for conditions in plain)
        self._channel = any(conditions.channel is not None for conditions in plain)
        # By type the consumers that may want it; under None those without a condition on the type.
        self._by_type: dict[object, list[tuple[Consumer, bool]]] = {None: []}
        types = {name for conditions in plain for name in conditions.cls_type or ()}
        for name in (None, *types):
            self._by_type[name] = [
                (consumer, is_own)
                for consumer, is_own in self._consumers
                if is_own or consumer.cls_type is None or name in consumer.cls_type
            ]
        self._remembered: dict[Facts, _Answer] = {}
        self._answers: dict[tuple[str, ...], _Answer] = {}
        self._suited: dict[tuple[object, ...], list[tuple[Consumer, bool]]] = {}

    def wanting(self, event: Event) -> tuple[Consumer, ...]:
        """Return the consumers that want an event, sorted by name. Exceptions of a ``match_event`` pass through."""
        facts = Facts.of_event(event, head=self._head, channel=self._channel)
        answer = self._remembered.get(facts)
        if answer is None:
            answer = self._find(facts)
        consumers = answer.consumers if answer.is_settled else answer.ask(event)
        if consumers and "caused_by" in event.header.context:
            consumers = _without_cause(consumers, event)
        return consumers

    def _find(self, facts: Facts) -> _Answer:
        candidates = self._candidates(facts)
        met = tuple([each for each, is_own in candidates if is_own or each.conditions.meet_channel(facts.channel)])
        key = tuple([consumer.name for consumer in met])
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            answer = self._answers[key] = _Answer(met)
        if _is_short(facts):
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()  # unlimited channels or versions: start again
            self._remembered[facts] = answer
        return answer

    def _candidates(self, facts: Facts) -> list[tuple[Consumer, bool]]:
        """Return the consumers that want such events in some channel: a topic may have unlimited channels."""
        key = (facts.cls_type, facts.schema, facts.version, facts.level)
        candidates = self._suited.get(key)
        if candidates is None:
            of_type = self._by_type.get(facts.cls_type, self._by_type[None])
            candidates = [(each, is_own) for each, is_own in of_type if is_own or each.conditions.meet_others(facts)]
            if _is_short(facts):
                if len(self._suited) >= _REMEMBERED:
                    self._suited.clear()
                self._suited[key] = candidates
        return candidates


class _Answer:
    """The consumers that want events with the same facts.

    Args:
        consumers: those whose conditions the facts meet, in order.
    """

    def __init__(self, consumers: tuple[Consumer, ...]) -> None:
        self.consumers = consumers
        self._all: list[_Placed] = []
        self._always: list[_Asked] = []
        asked: dict[Expression, _Asked] = {}
        for placed in enumerate(self.consumers):
            consumer = placed[1]
            if consumer.matches_its_own_way:
                self._always.append((partial(_isolated, consumer.match_event), [placed]))
            elif consumer.where is None:
                self._all.append(placed)
            else:
                asked.setdefault(consumer.where, (consumer.where.matches, []))[1].append(placed)
        self.is_settled = not (self._always or asked)
        needs = {where: where.need for where in asked}
        users = Counter(need.place for need in needs.values() if need is not None)
        places: dict[object, tuple[Callable[[Event], object], dict[object, list[_Asked]]]] = {}
        for where, need in needs.items():
            if need is None or users[need.place] == 1:
                self._always.append(asked[where])
                continue
            by_text = places.setdefault(need.place, (need.read, {}))[1]
            for text in need.texts:
                by_text.setdefault(text, []).append(asked[where])
        self._places = list(places.values())

    def ask(self, event: Event) -> tuple[Consumer, ...]:
        """Return the consumers whose ``where`` or ``match_event`` accepts the event."""
        matches = list(self._all)
        for test, placed in self._always:
            if test(event):
                matches += placed
        for read, by_text in self._places:
            value = read(event)
            if value.__class__ is str:
                for test, placed in by_text.get(value, ()):
                    if test(event):
                        matches += placed
        matches.sort()
        return tuple([consumer for _, consumer in matches])


def _is_short(facts: Facts) -> bool:
    """Return whether facts may be cached: a payload's type and version can be as long as an event."""
    return len(str(facts.cls_type)) + len(str(facts.version)) <= _LONGEST


def _without_cause(consumers: tuple[Consumer, ...], event: Event) -> tuple[Consumer, ...]:
    names = causes(event)
    return tuple([each for each in consumers if each.takes_messages or each.name not in names]) if names else consumers


@dataclass(eq=False)
class Handler:
    """The function that one consumer of a run calls, and its limits.

    Args:
        consumer: declares the handler.
        function: handles one event, or a list of events when the consumer takes batches.
        max_attempts: failed calls for an event after which the event becomes a dead letter.
        backoff: the delays between attempts.
        max_calls: concurrent calls; None for as many as there are workers.
    """

    consumer: Consumer
    function: Callable[..., object]
    max_attempts: int
    backoff: Backoff
    max_calls: int | None

    def __post_init__(self) -> None:
        self.name = self.consumer.name
        self.batch: BatchOptions | None = self.consumer.batch
        self.timeout: float | None = self.consumer.timeout
        self.is_async = self.consumer.is_async
        self.takes_messages = self.consumer.takes_messages


class Routed(NamedTuple):
    """A message as its topic's consumers see it.

    Attributes:
        event: None if the message is no event.
        tasks: the handlers that want it, each with the key by which it keeps order; None for no order.
        unwanted_type: the payload type of an event that no consumer wants; None for other events.
        error: why it can't be decoded or routed.
    """

    event: Event | None = None
    tasks: Sequence[tuple[Handler, str | None]] = ()
    unwanted_type: str | None = None
    error: BaseException | None = None


class Subscription:
    """One topic as an engine reads it: the handlers of its consumers, and which of them want an event.

    Attributes:
        ledger_prefix: what the names of consumers begin with in the ledger. Replays and attempts are a topic's own, and
            an event may be in several topics.
        all_handlers: the handlers, and the default one behind them.
        lease_lock: held while messages are released or their leases extended, so that no released message has its lease
            extended a moment later.
        error: why the topic does not answer; "" while it does.
    """

    def __init__(
        self, topic: Topic, handlers: Mapping[str, Handler], router: ConsumerRouter, default: Handler | None
    ) -> None:
        self.topic = topic
        self.name = topic.name
        self.ledger_prefix = f"{topic.name}/"
        self.handlers = handlers
        self.router = router
        self.default = default
        self.all_handlers = [*handlers.values(), *([default] if default else [])]
        self.lease_lock = threading.Lock()
        self.error = ""
        self._exists = False

    def capacity(self, threads: int) -> int:
        """Return the number of messages that the handlers can be called with at once."""
        sizes = [(each.max_calls or threads) * (each.batch.size if each.batch else 1) for each in self.all_handlers]
        return max(sizes)

    def route(self, message: Received) -> Routed:
        """Decode a message and find the handlers that want it."""
        if message.is_tombstone:
            return Routed(unwanted_type="tombstone")
        try:
            event = decode(message.body)
        except EventError as error:
            return Routed(error=error)
        try:
            tasks = [(self.handlers[consumer.name], consumer.key_of(event)) for consumer in self.router.wanting(event)]
        except BaseException as error:  # a consumer's own match_event
            return Routed(event, error=error)
        if tasks:
            return Routed(event, tasks)
        if self.default is not None and self.default.name not in causes(event):
            tasks.append((self.default, None))
        return Routed(event, tasks, event.cls_type or "no type")

    def receive(self, group: str, limit: int, wait: float, lease: float) -> tuple[list[Received] | None, float]:
        """Receive messages as ``Topic.receive`` does, and note whether the topic answers.

        Returns:
            The messages, None if the topic does not exist; and the end of their leases, in seconds of ``uptime``.
        """
        until = 0.0
        try:
            self._exists = self._exists or self.topic.exists()
            if not self._exists:
                return None, until
            until = uptime() + lease
            received = self.topic.receive(group, limit, wait, lease)
        except TopicError as error:
            self._exists = False
            self.error = str(error)
            raise
        self.error = ""
        return received, until
