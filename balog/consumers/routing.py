"""Routing: which of a topic's consumers want an event, fast for any number of consumers.

Events that a handler logs name its consumer as their cause, so that they never return to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial

from balog.consumers.conditions import Facts
from balog.consumers.consumer import Consumer
from balog.event import Event
from balog.filters import Expression

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
