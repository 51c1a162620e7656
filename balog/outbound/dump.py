"""A topic's messages into an archive's files: in the files first, and only then acked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from balog.errors import EventError, TopicError
from balog.event import decode, encode
from balog.sinks.base import Delivery, Sink
from balog.topics import GivenUp, Received, Topic

__all__ = ["Counts", "dump"]

_LEASE = 60.0
_KEPT_LEASE = 300.0
_BATCH = 1000
_QUIET = 2
_LONGEST_QUIET = 15.0


class Counts(Struct):
    """What a dump did, in messages: ``written`` to the files; ``dead`` were no events and are dead letters now;
    ``left`` were given back to the queue, with those that are no events.
    """

    written: int = 0
    dead: int = 0
    left: int = 0


def dump(
    topic: Topic,
    group: str,
    sink: Sink,
    *,
    keep: bool = False,
    limit: int | None = None,
    step: Callable[[Counts], object] = lambda counts: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Counts:
    """Write what a group has before it, until nothing comes any more.

    A kill leaves what was not acked to the next dump, which may write some of it again; nothing is lost.

    Args:
        sink: opened; takes each batch durably before it is acked. Closed by the caller.
        keep: hold every message until the end and then give it back, for a queue that is only to be looked at.
        limit: at most so many messages.

    Raises:
        TopicError: the topic can't be reached.
        SinkError: the files can't be written. What was not acked is given back.
    """
    counts = Counts()
    held: list[Received] = []
    seen: set[str] = set()
    lease = _KEPT_LEASE if keep else _LEASE
    quiet = taken = 0
    renewed = last = time.monotonic()
    in_hand: Sequence[Received] = ()
    try:
        while not should_stop() and (limit is None or taken < limit):
            want = _BATCH if limit is None else min(limit - taken, _BATCH)
            in_hand = topic.receive(group, want, max(topic.patience, 0.2), lease)
            if keep and time.monotonic() - renewed > lease / 3:
                topic.extend(group, held, lease)
                renewed = time.monotonic()
            if in_hand:
                quiet, last = 0, time.monotonic()
            elif (quiet := quiet + 1) >= _QUIET and (
                _is_through(topic, group) or time.monotonic() - last > _LONGEST_QUIET
            ):
                break
            taken += len(in_hand)
            new = {message.id: message for message in in_hand if message.id not in seen}.values()
            events, others = _read(list(new) if keep else in_hand)
            if events:
                sink.write([delivery for _, delivery in events])
                counts.written += len(events)
            if keep:
                held += [
                    replace(message, body=b"") for message in in_hand
                ]  # a queue's bodies are more than memory holds
                seen.update(message.id for message in in_hand)
            else:
                topic.ack(group, [message for message, _ in events])
                counts.dead += topic.dead_letter_each(group, others)
            in_hand = ()
            step(counts)
    finally:
        if back := [*held, *in_hand]:
            with suppress(TopicError):  # they come back when their leases have run out
                counts.left = topic.release(group, back, attempted=False)
    return counts


def _is_through(topic: Topic, group: str) -> bool:
    """Tell whether nothing more will come: joining a group may take a server longer than a receive waits."""
    state = topic.group_state(group)
    return not (state.lag or state.waiting)


def _read(messages: Sequence[Received]) -> tuple[list[tuple[Received, Delivery]], list[GivenUp]]:
    events: list[tuple[Received, Delivery]] = []
    others: list[GivenUp] = []
    for message in messages:
        try:
            event = decode(message.body)
        except EventError as error:
            others.append(GivenUp(message, f"not an event: {error}"))
        else:
            # A line of the archive is one line, also where the message was laid out over several.
            body = message.body if b"\n" not in message.body and b"\r" not in message.body else encode(event)
            events.append((message, Delivery(event, body)))
    return events, others
