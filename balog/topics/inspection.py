"""Inspect a topic: its size, rate and event types. Groups are not affected."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from balog.common.errors import EventError
from balog.event import Event, decode
from balog.filters import Expression
from balog.topics.base import Received, Topic, TopicState

NO_TYPE = "(no cls_type)"
NO_EVENT = "(not an event)"


class Inspection(Struct, frozen=True):
    """A topic's state, and statistics of a sample of its newest messages.

    Attributes:
        state: of the topic.
        sampled: number of messages in the sample.
        rate: messages a second, from the sample's oldest message until now; None if the backend returns any messages
            instead of the newest.
        types: number of messages of each ``cls_type``, the most frequent first.
    """

    state: TopicState
    sampled: int
    rate: float | None
    types: dict[str, int]


_SAMPLE = 1000
_SAMPLE_WHERE = 10_000
_SAMPLE_OF_QUEUE = 10  # reading a queue means receiving: it hides messages for a while and counts as a delivery


def inspect(topic: Topic) -> Inspection:
    """Inspect a topic and its newest 1000 messages; 10 of a queue, where reading counts as a delivery.

    Raises:
        TopicError: the topic does not exist, or can't be reached.
    """
    state = topic.describe()
    messages = topic.peek(_SAMPLE if topic.keeps_groups else _SAMPLE_OF_QUEUE, newest=True)
    types = Counter(_type_of(message.body) for message in messages)
    rate = None
    if messages and (topic.keeps_order or len(messages) >= state.messages):
        seconds = time.time() - min(message.published for message in messages)
        rate = len(messages) / max(seconds, 1.0)
    return Inspection(state, len(messages), rate, dict(types.most_common()))


def look(
    topic: Topic, limit: int, *, newest: bool = False, where: Expression | None = None
) -> Iterator[tuple[Received, Event | EventError]]:
    """Yield messages with their events, or with the reason why they have none.

    Args:
        limit: the largest number of messages.
        where: selects events among 10,000 messages, or among 10 of a queue.
    """
    sample = _SAMPLE_WHERE if topic.keeps_groups else _SAMPLE_OF_QUEUE
    matches = []
    for message in topic.peek(limit if where is None else sample, newest=newest):
        try:
            event: Event | EventError = decode(message.body)
        except EventError as error:
            event = error
        if where is None or (isinstance(event, Event) and where.matches(event)):
            matches.append((message, event))
    yield from matches[-limit:] if newest else matches[:limit]


def _type_of(body: bytes) -> str:
    try:
        return decode(body).cls_type or NO_TYPE
    except EventError:
        return NO_EVENT
