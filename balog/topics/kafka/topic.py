"""One topic of a Kafka cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar, Literal

from balog.common.errors import ConfigError, TopicError, TopicNotFoundError
from balog.event import MAX_EVENT_BYTES
from balog.topics.base import (
    DEFAULT_LEASE,
    DeadLetter,
    GivenUp,
    GroupState,
    Message,
    Received,
    Topic,
    TopicState,
    check_name,
)
from balog.topics.kafka import inspection
from balog.topics.kafka.clients import Clients
from balog.topics.kafka.dead_letters import DeadLetters
from balog.topics.kafka.member import GroupMember
from balog.topics.kafka.partition import FetchedMessage
from balog.topics.kafka.records import ID, OutgoingRecord, again_record, body_of, new_number, read

DEAD = ".dead"
RETRY = ".retry"
"""A group's own topics are called ``<topic>.<group>.dead`` and ``<topic>.<group>.retry``."""

_LONGEST = 249
_ROOM = 128 * 1024
_CONFIG = {"max.message.bytes": str(MAX_EVENT_BYTES + _ROOM)}


class KafkaTopic(Topic):
    """A log in partitions. Each partition keeps its order, and a key always goes to the same partition.

    A group's receiver in this process is a member of the consumer group, and gets the partitions that Kafka gives it.
    """

    keeps_ids: ClassVar[bool] = False

    def __init__(self, name: str, clients: Clients, where: str) -> None:
        self.name = name
        self._clients = clients
        self._where = f"topic {name} ({where})"
        self._lock = threading.Lock()
        self._partitions = 0
        self._dead_letters: dict[str, DeadLetters] = {}
        self._retries: set[str] = set()

    @property
    def keeps_order(self) -> bool:  # type: ignore[override]  # not known before the topic is
        """Whether the topic has one partition."""
        return (self._count_partitions() or self._clients.settings.partitions) == 1

    def _count_partitions(self) -> int:
        if not self._partitions:
            self._partitions = self._clients.partitions(self.name, self._where)
        return self._partitions

    def exists(self) -> bool:
        """Return whether the cluster has the topic; this does not create it."""
        return self._clients.partitions(self.name, self._where) > 0

    def close(self) -> None:
        """Leave the groups; unacked messages are delivered again. A later use joins the groups again."""
        self._clients.close(self.name)

    # -- publishing -----------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> int:
        """Store messages on every replica in sync, and return their number.

        If this raises, the error states how many messages were stored. Publishing all again stores those twice.
        """
        outgoing = [
            OutgoingRecord(bytes(message.body), message.key, [(ID, message.id)], message.id) for message in messages
        ]
        if not outgoing:
            return 0
        if not self._count_partitions():
            self._clients.make_topic(self.name, self._clients.settings.partitions, _CONFIG, self._where)
        self._clients.publisher.send(self.name, outgoing, self._where)
        return len(outgoing)

    # -- receiving and settling -----------------------------------------------------------------------------------

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Receive messages from the partitions that the group assigned to this process.

        The first call joins the group and waits up to 10 seconds for it. A delivery is committed before it is returned,
        so that an attempt counts even if it kills the process.
        """
        return self._member(group).receive(limit, wait, lease)

    def _member(self, group: str) -> GroupMember:
        member = self._clients.member_if_there(self.name, group)
        if member is not None:
            return member
        names = self._names(group)
        if not self._count_partitions():
            raise self._missing()
        return self._clients.member(self.name, group, lambda: self._join(group, names))

    def _join(self, group: str, names: tuple[str, str]) -> GroupMember:
        bounds, move = partial(self._clients.bounds, where=self._where), partial(self._move, group)
        return GroupMember(self._clients.settings, self.name, names[1], group, self._where, bounds, move)

    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Mark messages as handled; committed when this returns."""
        member = self._clients.member_if_there(self.name, group)
        return member.settle(received) if member is not None else 0

    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Release messages to this process, or to the next owner of their partition."""
        member = self._clients.member_if_there(self.name, group)
        return member.release(received, delay, attempted=attempted) if member is not None else 0

    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Extend leases from now. Only this process knows them: Kafka has no leases."""
        member = self._clients.member_if_there(self.name, group)
        return member.extend(received, lease) if member is not None else 0

    def holds(self, group: str, received: Received) -> bool:
        """Return False once the group has given the message's partition to another process, or is about to."""
        member = self._clients.member_if_there(self.name, group)
        return member is not None and member.holds(received)

    def dead_letter_each(self, group: str, given_up: Sequence[GivenUp]) -> int:
        """Write messages to the group's dead letters, all with one commit whatever the reasons."""
        member = self._clients.member_if_there(self.name, group)
        if member is None:
            return 0
        dead_letters = self._dead(group)
        why = {failure.received.receipt: failure for failure in given_up}
        return member.settle(
            [failure.received for failure in given_up],
            lambda held: dead_letters.write([(message, why[member.receipt(message)]) for message in held]),
        )

    def _move(self, group: str, leaving: Sequence[tuple[FetchedMessage, float]]) -> None:
        self._make_retry(group)
        again = [
            again_record(
                *(held.id, held.body, held.key, held.published, held.partition.generation_of(held)),
                *(held.deliveries, due),
            )
            for held, due in leaving
        ]
        self._clients.publisher.send(self._names(group)[1], again, self._where)

    def _make_retry(self, group: str) -> None:
        if group in self._retries:
            return
        name = self._names(group)[1]
        if not self._clients.partitions(name, self._where):
            self._clients.make_topic(name, 1, _CONFIG, self._where)
            member = self._clients.member_if_there(self.name, group)
            if member is not None:
                member.find_retries()
        self._retries.add(group)

    # -- dead letters ---------------------------------------------------------------------------------------------

    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Return a group's dead letters, oldest first."""
        return self._dead(group).list(limit)

    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Write dead letters to the group's retry topic, which its consumers read too, then delete them.

        After a crash in between, a dead letter is both redriven and still there.
        """
        if not self._count_partitions():
            raise self._missing()
        back = self._dead(group).redrive(decide, limit)
        member = self._clients.member_if_there(self.name, group)
        if back and member is not None:
            member.find_retries()
        return back

    def _dead(self, group: str) -> DeadLetters:
        dead, retry = self._names(group)
        with self._lock:
            if group not in self._dead_letters:
                self._dead_letters[group] = DeadLetters(
                    *(self._clients, self.name, group, dead, retry, self._where), lambda: self._make_retry(group)
                )
            return self._dead_letters[group]

    # -- looking --------------------------------------------------------------------------------------------------

    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Read from an end of the log; several partitions are merged by time."""
        return inspection.peek(self._clients, self._log(), limit, self._where, newest=newest)

    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Commit other offsets. Messages in the group's retry topic stay, unless the group moves to the latest.

        The number of the replay is in the metadata of the commits. Moving to the latest message is not a replay.
        """
        check_name("group", group)
        log = self._log()
        self._clients.leave(self.name, group)
        retries = self._retry_log(group)
        logs = [topic_log for topic_log in (log, retries) if topic_log is not None]
        replay = max(inspection.last_replay(self._clients, topic_log, group, self._where) for topic_log in logs)
        if to != "latest":
            replay = new_number(replay)
        inspection.seek(self._clients, log, group, to, replay, self._where)
        if retries is not None:
            inspection.seek(self._clients, retries, group, to if to == "latest" else "stay", replay, self._where)
        return self.group_state(group)

    def group_state(self, group: str) -> GroupState:
        """Return the state of a group, from its offsets: gaps in a compacted log count as messages.

        Unsettled messages of other processes count as in flight or, if the group has no members, as waiting.
        """
        check_name("group", group)
        return self._state_of(group, self._log())

    def _state_of(self, group: str, log: inspection.Log) -> GroupState:
        member = self._clients.member_if_there(self.name, group)
        total = inspection.pending(self._clients, log, group, member, self._where)
        retries = self._retry_log(group)
        if retries is not None:
            more = inspection.pending(self._clients, retries, group, member, self._where)
            total = total.plus(more)._replace(position=total.position)
        return GroupState(group, *total, self._dead(group).count())

    def describe(self) -> TopicState:
        """Return the number of offsets and the groups; Kafka counts no bytes of messages."""
        log = self._log()
        groups = [self._state_of(name, log) for name in inspection.groups(self._clients, log, self._where)]
        return TopicState(self.name, log.length, None, None, groups)

    def bounds(self) -> dict[int, tuple[int, int]]:
        """Return the first offset of each partition, and the one after its last.

        Raises:
            TopicError: the topic does not exist.
        """
        return self._log().bounds

    def read(self, partition: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield offset and body of the messages from ``start`` up to ``end``, outside of any group.

        Raises:
            TopicError: no record arrived for 30 seconds, or the ACL is missing.
        """
        for record in read(self._clients.settings, self.name, {partition: (start, end)}, self._where):
            yield record.offset() or 0, body_of(record)

    def _log(self) -> inspection.Log:
        log = self._log_of(self.name)
        if log is None:
            raise self._missing()
        return log

    def _retry_log(self, group: str) -> inspection.Log | None:
        return self._log_of(self._names(group)[1])

    def _log_of(self, name: str) -> inspection.Log | None:
        count = self._clients.partitions(name, self._where)
        return inspection.Log(name, self._clients.bounds(name, range(count), self._where)) if count else None

    def _names(self, group: str) -> tuple[str, str]:
        check_name("group", group)
        dead, retry = f"{self.name}.{group}{DEAD}", f"{self.name}.{group}{RETRY}"
        if len(retry) > _LONGEST:
            raise ConfigError(
                f"topic name {self.name!r} and group name {group!r} can't be used together: {retry!r} is longer than"
                f" {_LONGEST} characters"
            )
        return dead, retry

    def _missing(self) -> TopicError:
        return TopicNotFoundError(self._where)
