"""Dump a topic into an archive: messages are acked after they are in its files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, ClassVar

from msgspec.structs import replace

from balog.common.errors import EventError, TopicError
from balog.common.stats import Stats, counter
from balog.event import decode, encode
from balog.sinks.base import Delivery, Sink
from balog.topics import GivenUp, Received, Topic

_LEASE = 60.0
_KEPT_LEASE = 300.0
_BATCH = 1000
_QUIET = 2
_LONGEST_QUIET = 15.0


class DumpStats(Stats):
    """Counters of a dump."""

    component: ClassVar[str] = "dump"
    written: Annotated[int, counter("Messages written to the files.")] = 0
    dead: Annotated[int, counter("Messages that are not events and were dead-lettered.")] = 0
    left: Annotated[int, counter("Messages released to the queue.")] = 0


def dump(
    topic: Topic,
    group: str,
    sink: Sink,
    *,
    keep: bool = False,
    limit: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> DumpStats:
    """Write the messages that wait for a group, until no more arrive.

    If the process is killed, the next dump gets the messages that were not acked, and may write some of them again.

    Args:
        sink: an open sink that takes each batch durably; the caller closes it.
        keep: hold all messages until the end and then release them, to leave the queue as it was.
        limit: messages at most.

    Raises:
        TopicError: the topic can't be reached.
        SinkError: the files can't be written. Messages that were not acked are released.
    """
    written = dead = left = 0
    held: list[Received] = []
    seen: set[str] = set()
    lease = _KEPT_LEASE if keep else _LEASE
    quiet = taken = 0
    renewed = last = time.monotonic()
    received: Sequence[Received] = ()
    try:
        while not should_stop() and (limit is None or taken < limit):
            number = _BATCH if limit is None else min(limit - taken, _BATCH)
            received = topic.receive(group, number, max(topic.poll_timeout, 0.2), lease)
            if keep and time.monotonic() - renewed > lease / 3:
                topic.extend(group, held, lease)
                renewed = time.monotonic()
            if received:
                quiet, last = 0, time.monotonic()
            elif (quiet := quiet + 1) >= _QUIET and (
                _is_through(topic, group) or time.monotonic() - last > _LONGEST_QUIET
            ):
                break
            taken += len(received)
            new = {message.id: message for message in received if message.id not in seen}.values()
            events, others = _read(list(new) if keep else received)
            if events:
                sink.write([delivery for _, delivery in events])
                written += len(events)
            if keep:
                # The bodies of all messages of a queue may not fit into memory.
                held += [replace(message, body=b"") for message in received]
                seen.update(message.id for message in received)
            else:
                topic.ack(group, [message for message, _ in events])
                dead += topic.dead_letter_each(group, others)
            received = ()
    finally:
        if back := [*held, *received]:
            with suppress(TopicError):  # they come again when their leases expire
                left = topic.release(group, back, attempted=False)
    return DumpStats(written=written, dead=dead, left=left)


def _is_through(topic: Topic, group: str) -> bool:
    """Return whether the group has no messages left; joining a group may take longer than a receive waits."""
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
            # A message that spans several lines becomes one line of the archive.
            body = message.body if b"\n" not in message.body and b"\r" not in message.body else encode(event)
            events.append((message, Delivery(event, body)))
    return events, others
