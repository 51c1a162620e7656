"""A member of a consumer group: a consumer of librdkafka, the thread that polls it, and its fetched messages.

Kafka commits offsets, not messages. The member keeps which messages are in flight, until when, and their attempts. It
commits them in the metadata of the offset before it delivers a message, so that an attempt counts even if it kills the
process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from balog.common.errors import TopicError
from balog.topics.base import Received
from balog.topics.kafka.commits import FencedError
from balog.topics.kafka.errors import explain
from balog.topics.kafka.membership import CATCH_UP, Membership
from balog.topics.kafka.partition import FetchedMessage

JOIN_TIMEOUT = 10.0
"""Seconds that the first receive waits for the group to let it in."""

FENCED_TIMEOUT = 30.0
"""Seconds that a commit is retried while the group rebalances."""


class GroupMember(Membership):
    """The messages of a :class:`Membership`: received, settled, released."""

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self, limit: int, wait: float, lease: float) -> list[Received]:
        """Receive messages, first those received before, then new ones.

        Raises:
            TopicError: the cluster does not answer, or denies access.
        """
        begin = time.monotonic()
        deadline = begin + wait
        looked = False
        while True:
            with self._changed:
                joined = self._joined
                taken = self._deliveries.take(limit, lease)
                if taken:
                    self._fetcher.wake()
                else:
                    self._raise_if_broken()
                    now = time.monotonic()
                    until = max(deadline, self._expecting if joined else begin + JOIN_TIMEOUT)
                    if now < until:
                        self._changed.wait(min(until - now, self._deliveries.seconds_to_next(now)))
                        continue
            if taken:
                try:
                    self._commits.commit()
                except FencedError:
                    self._put_back(taken)
                    time.sleep(0.05)
                    if time.monotonic() > deadline:
                        return []
                    continue
                except TopicError:
                    self._put_back(taken)
                    raise
                return [self._received(held) for held in taken]
            if not joined:
                self._bounds(self._topics[0], [0])  # raises if the cluster does not answer
                return []
            if looked or (wait >= 0.5 and self._away is None):
                return []
            looked = True
            deadline = time.monotonic() + self._behind()

    def receipt(self, held: FetchedMessage) -> str:
        """Return the receipt of a message's current delivery."""
        return self._deliveries.receipt(held)

    def _received(self, held: FetchedMessage) -> Received:
        receipt, generation = self._deliveries.receipt(held), held.partition.generation_of(held)
        return Received(
            *(held.id, held.body, receipt, held.deliveries, held.published, held.key, generation, held.is_tombstone)
        )

    def _put_back(self, taken: Sequence[FetchedMessage]) -> None:
        with self._changed:
            now = time.monotonic()
            for held in taken:
                if self._deliveries.is_held(held):
                    held.take_back(now, attempted=False)
                    self._deliveries.push(held)

    def _behind(self) -> float:
        """Return the seconds to wait for messages that are in the log and not fetched yet; 0 at the end of the log.

        Raises:
            TopicError: the cluster does not answer.
        """
        with self._changed:
            owned = {key: partition.next_offset for key, partition in self._partitions.items()}
        for topic in {topic for topic, _ in owned}:
            numbers = [number for name, number in owned if name == topic]
            for number, (start, end) in self._bounds(topic, numbers).items():
                if end > max(start, owned[topic, number] or 0):
                    return CATCH_UP
        self._away = None
        return 0.0

    # -- settling -------------------------------------------------------------------------------------------------

    def settle(
        self, received: Sequence[Received], write: Callable[[Sequence[FetchedMessage]], None] | None = None
    ) -> int:
        """Settle messages durably, and return how many had a valid receipt.

        Args:
            write: called with the messages before a commit passes them; if it raises, they stay unsettled.
        """
        with self._changed:
            messages = []
            for message in received:  # one by one: a second receipt of the same message finds nothing
                held = self._deliveries.find(message.receipt)
                if held is not None:
                    held.claim()
                    messages.append(held)
        if not messages:
            return 0
        try:
            if write is not None:
                write(messages)
            with self._changed:
                for held in messages:
                    held.pass_commits()
            self._commit_with_retries(messages)
        except BaseException:
            with self._changed:
                for held in messages:
                    held.unclaim()
                    self._deliveries.push(held)
            raise
        with self._changed:
            owned = [held for held in messages if self._deliveries.is_held(held)]
            for held in owned:
                held.partition.settle(held)
            self._fetcher.wake()
            self._changed.notify_all()
        return len(owned)

    def release(self, received: Sequence[Received], delay: float, *, attempted: bool) -> int:
        """Release messages, to be delivered again after ``delay`` seconds."""
        with self._changed:
            ready_at = time.monotonic() + delay
            messages = [held for message in received if (held := self._deliveries.find(message.receipt)) is not None]
            for held in messages:
                held.take_back(ready_at, attempted=attempted)
                self._deliveries.push(held)
            self._changed.notify_all()
        return len(messages)

    def extend(self, received: Sequence[Received], lease: float) -> int:
        """Extend leases to ``lease`` seconds from now."""
        with self._changed:
            until = time.monotonic() + lease
            messages = [held for message in received if (held := self._deliveries.find(message.receipt)) is not None]
            for held in messages:
                if until < held.ready_at:
                    self._deliveries.push(held, until)
                held.put_off(until)
        return len(messages)

    def holds(self, received: Received) -> bool:
        """Return whether the message is this process's, and its partition stays."""
        with self._changed:
            held = self._deliveries.find(received.receipt)
            return held is not None and not held.partition.draining

    # -- committing -----------------------------------------------------------------------------------------------

    def _commit_with_retries(self, held: Sequence[FetchedMessage]) -> None:
        """Commit, and retry while the group rebalances. Returns also if the partitions were lost."""
        deadline = time.monotonic() + FENCED_TIMEOUT
        while True:
            try:
                return self._commits.commit()
            except FencedError as fenced:
                with self._changed:
                    if not any(self._deliveries.is_held(message) for message in held):
                        return None
                    if time.monotonic() > deadline or not self.usable:
                        raise explain(fenced.error, self._where) from None
                    self._changed.wait(0.1)

    def describe(self) -> dict[tuple[str, int], tuple[int | None, int, int, int, int]]:
        """Return for each partition: next offset, new messages, in flight, waiting, and the offset delivered up to."""
        with self._changed:
            now = time.monotonic()
            seen = {}
            for key, partition in self._partitions.items():
                untouched = in_flight = waiting = 0
                for held in partition.held.values():
                    if held.settling:
                        in_flight += 1
                    elif not held.touched:
                        untouched += 1
                    elif held.token and held.ready_at > now:
                        in_flight += 1
                    else:
                        waiting += 1
                seen[key] = (partition.next_offset, untouched, in_flight, waiting, partition.handed)
            return seen
