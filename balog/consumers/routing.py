"""Which of a topic's consumers want an event, told fast however many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from balog.consumers.causes import causes
from balog.consumers.conditions import Facts
from balog.consumers.consumer import Consumer
from balog.event import Event

__all__ = ["Router"]

_REMEMBERED = 4096

_Test = Callable[[Event], bool]
_Found = tuple[tuple[Consumer, ...], tuple[tuple[Consumer, _Test | None], ...]]


class Router:
    """Tells which consumers want an event.

    What conditions read of an event (type, versions, channel, level) takes few different values in a topic, so the
    answer to each combination is remembered. Only a ``where``, and a subclass that matches in its own way, are asked
    for every event. An event that a handler logged is wanted by nobody whom ``context.caused_by.consumers`` names:
    they handled what led to it, and would go on without end. Threads may share a router.

    Args:
        consumers: those of one topic.
    """

    def __init__(self, consumers: Sequence[Consumer]) -> None:
        ordered = sorted(consumers, key=lambda consumer: consumer.name)
        self._consumers = [(consumer, consumer.matches_its_own_way) for consumer in ordered]
        plain = [consumer.conditions for consumer, is_own in self._consumers if not is_own]
        self._head = any(conditions.reads_head for conditions in plain)
        self._channel = any(conditions.channel is not None for conditions in plain)
        # Those that a type may interest; under None those that don't ask for a type.
        self._by_type: dict[object, list[tuple[Consumer, bool]]] = {None: []}
        types = {name for conditions in plain for name in conditions.cls_type or ()}
        for name in (None, *types):
            self._by_type[name] = [
                (consumer, is_own)
                for consumer, is_own in self._consumers
                if is_own or consumer.cls_type is None or name in consumer.cls_type
            ]
        self._remembered: dict[Facts, _Found] = {}
        self._suited: dict[tuple[object, ...], list[tuple[Consumer, bool]]] = {}

    def wanting(self, event: Event) -> tuple[Consumer, ...]:
        """Give the consumers that want an event, sorted by name. What a subclass's ``match_event`` raises passes."""
        facts = Facts.of_event(event, head=self._head, channel=self._channel)
        found = self._remembered.get(facts)
        if found is None:
            found = self._find(facts)
        consumers, tests = found
        if tests:
            consumers = tuple([one for one, test in tests if test is None or test(event)])
        if consumers and "caused_by" in event.header.context:
            consumers = _without_cause(consumers, event)
        return consumers

    def _find(self, facts: Facts) -> _Found:
        candidates = self._candidates(facts)
        met = tuple([one for one, is_own in candidates if is_own or one.conditions.meet_channel(facts.channel)])
        tests = tuple([(one, _test(one)) for one in met])
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()  # channels or versions without end: begin again
        found = self._remembered[facts] = (met, tests if any(test for _, test in tests) else ())
        return found

    def _candidates(self, facts: Facts) -> list[tuple[Consumer, bool]]:
        """Give those that want such events if the channel suits them: a topic may have channels without end."""
        key = (facts.cls_type, facts.schema, facts.version, facts.level)
        found = self._suited.get(key)
        if found is None:
            of_type = self._by_type.get(facts.cls_type, self._by_type[None])
            found = [(one, is_own) for one, is_own in of_type if is_own or one.conditions.meet_others(facts)]
            if len(self._suited) >= _REMEMBERED:
                self._suited.clear()
            self._suited[key] = found
        return found


def _test(consumer: Consumer) -> _Test | None:
    """Give what has to be asked for every event; None when nothing has."""
    if consumer.matches_its_own_way:
        return consumer.match_event
    return None if consumer.where is None else consumer.where.matches


def _without_cause(consumers: tuple[Consumer, ...], event: Event) -> tuple[Consumer, ...]:
    names = causes(event)
    return tuple([consumer for consumer in consumers if consumer.name not in names]) if names else consumers
