"""The interface of every topic, implemented by SQLite files, queues and logs."""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal, NamedTuple, TypeVar

from msgspec import Struct

from balog.common.errors import ConfigError

DEFAULT_LEASE = 30.0
"""Seconds that a received message belongs to its receiver, which extends the lease while it works."""

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")

Self = TypeVar("Self", bound="_Closing")


class Message(Struct, frozen=True):
    """A message to publish.

    Attributes:
        id: its identity. A topic that keeps ids (``Topic.keeps_ids``) and has this one does not store it again.
        body: any bytes, usually an event.
        key: messages with the same key keep their order in a backend that orders by key only (Kafka's partitions, SQS's
            message groups).
    """

    id: str
    body: bytes
    key: str | None = None


class Generation(NamedTuple):
    """Which replay and which redrive a delivery belongs to; a later generation is larger.

    Attempts of an earlier generation do not count in a later one.

    Attributes:
        replay: the number of the group's last :meth:`Topic.seek`; 0 before the first one.
        redrive: the number of the message's redrive; 0 for a message that was not redriven.
    """

    replay: int = 0
    redrive: int = 0


class Received(Struct, frozen=True):
    """A message that a group has received.

    Attributes:
        receipt: identifies this delivery.
        attempts: number of deliveries to the group, including this one.
        published: seconds since the epoch.
        key: the message's key, if the backend keeps it.
        is_tombstone: the message has no value: in Kafka, it deletes its key from a compacted topic.
    """

    id: str
    body: bytes
    receipt: str
    attempts: int
    published: float
    key: str | None = None
    generation: Generation = Generation()
    is_tombstone: bool = False


class DeadLetter(Struct, frozen=True):
    """A message that a group gave up.

    Attributes:
        reason: one line.
        attempts: number of deliveries to the group.
        died: seconds since the epoch.
        consumers: names of the consumers that gave up the message; empty if none received it.
        traceback: that of their error; empty likewise.
        token: identifies the dead letter in the topic.
    """

    id: str
    body: bytes
    group: str
    reason: str
    attempts: int
    died: float
    consumers: tuple[str, ...] = ()
    traceback: str = ""
    token: str = ""


class GivenUp(Struct, frozen=True):
    """A message that a group gives up, with the details for its :class:`DeadLetter`."""

    received: Received
    reason: str
    consumers: tuple[str, ...] = ()
    traceback: str = ""


class GroupState(Struct, frozen=True):
    """The progress of a group.

    Attributes:
        position: the position of the last delivered message, in the topic's own counting.
        lag: number of messages that the group has never received.
        in_flight: number of messages under a lease.
        waiting: number of messages that were received, not acked, and will be delivered again.
        dead: number of dead letters.
    """

    name: str
    position: int
    lag: int
    in_flight: int
    waiting: int
    dead: int

    @property
    def pending(self) -> int:
        """Number of messages that the group has neither acked nor given up."""
        return self.lag + self.in_flight + self.waiting


class TopicState(Struct, frozen=True):
    """The content of a topic: number of messages, bytes of their bodies, time of the oldest (epoch seconds), groups.

    None where the backend does not know it.
    """

    name: str
    messages: int
    bytes: int | None
    oldest: float | None
    groups: list[GroupState]


class _Closing(ABC):
    @abstractmethod
    def close(self) -> None:
        """Close files and connections. A later use opens them again."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Topic(_Closing):
    """Messages in the order of their publishing, each delivered to every group until the group acks it.

    Delivery is at least once: a message whose lease expires is delivered again. All methods are thread-safe, and raise
    :class:`balog.common.errors.TopicError`, whose ``retryable`` is whether a retry can help.

    Attributes:
        keeps_groups: whether each group gets every message. False for a queue, which all groups share.
        keeps_order: whether all messages keep their order. If False, at most those of one key do.
        one_receiver: whether only one thread of a process may receive. True if messages of one key are delivered in
            order even while earlier ones are in flight, because two threads could swap them.
        keeps_ids: whether a published id is not stored again.
        counts_attempts: whether ``release(attempted=False)`` undoes the delivery. If False, every delivery counts.
        poll_timeout: recommended seconds to wait in ``receive``; a stop may take as long.
    """

    name: str
    keeps_groups: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True
    one_receiver: ClassVar[bool] = True
    keeps_ids: ClassVar[bool] = True
    counts_attempts: ClassVar[bool] = True
    poll_timeout: float = 0.5

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the topic exists. The first message that is published creates it."""

    @abstractmethod
    def publish(self, messages: Iterable[Message]) -> int:
        """Store messages durably, all or none, and return the number of new ones."""

    def publish_new(self, messages: Sequence[Message]) -> set[str] | None:
        """Store messages as ``publish`` does; return the ids of new ones, or None if the backend does not keep ids."""
        self.publish(messages)
        return None

    @abstractmethod
    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Receive messages for a group, oldest first. A new group begins at the oldest message of the topic.

        Args:
            limit: the largest number of messages; large bodies may reduce it.
            wait: seconds to wait for the first message.
            lease: seconds until an unacked message is delivered again.
        """

    @abstractmethod
    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Mark messages as handled, and return how many had a valid receipt."""

    @abstractmethod
    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Release messages, to be delivered again after ``delay`` seconds. Return how many had a valid receipt.

        Args:
            attempted: whether a handler ran. If not, the delivery does not count as an attempt.
        """

    @abstractmethod
    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Extend leases to ``lease`` seconds from now. Return how many had a valid receipt."""

    def holds(self, group: str, received: Received) -> bool:
        """Return False if this process lost a message before the end of its lease. Called before each handler's call.

        It asks no server. A backend without such a loss, such as Kafka's rebalances, need not override it.
        """
        return True

    def dead_letter(
        self,
        group: str,
        received: Sequence[Received],
        reason: str,
        *,
        consumers: Sequence[str] = (),
        traceback: str = "",
    ) -> int:
        """Move messages to the dead letters for one reason; see :meth:`dead_letter_each`."""
        return self.dead_letter_each(group, [GivenUp(each, reason, tuple(consumers), traceback) for each in received])

    @abstractmethod
    def dead_letter_each(self, group: str, given_up: Sequence[GivenUp]) -> int:
        """Move messages to the dead letters, each for its own reason. Return how many had a valid receipt.

        One call takes messages with different reasons, because acks wait for the dead letters.
        """

    @abstractmethod
    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Return a group's dead letters, oldest first."""

    @abstractmethod
    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Redrive dead letters to their group, and to no other, without attempts. Return the number of messages.

        Each message has a larger ``Generation.redrive`` than before. A dead letter is deleted only after its message is
        stored, so that a crash loses neither.

        Args:
            decide: returns the original or a changed body to send, or None to keep the dead letter. Called once for
                each dead letter, oldest first if the backend keeps order.
            limit: the largest number of dead letters to pass to ``decide``.
        """

    @abstractmethod
    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Return messages in the order of their publishing, without taking them from any group.

        Their receipts are invalid.

        Args:
            newest: return the newest messages instead of the oldest. A backend without an order returns any.
        """

    @abstractmethod
    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Move a group to the oldest message, past the newest, or to the first one at or after a time.

        This resets leases and attempts of the group, and increases ``Generation.replay`` of later deliveries.
        No consumer of the group may be running.

        Args:
            to: ``earliest``, ``latest``, or seconds since the epoch.

        Raises:
            TopicError: the topic is a queue, or a consumer of the group is running.
        """

    @abstractmethod
    def group_state(self, group: str) -> GroupState:
        """Return the state of a group. Cheap enough to call whenever nothing is received."""

    @abstractmethod
    def describe(self) -> TopicState:
        """Return the state of the topic. This may read all messages."""


class Topics(_Closing):
    """A backend: topics by name."""

    url: str

    @abstractmethod
    def topic(self, name: str) -> Topic:
        """Return the topic of that name, whether it exists yet or not.

        Raises:
            ConfigError: the name is invalid.
        """

    @abstractmethod
    def names(self) -> list[str]:
        """List the topics that exist, sorted.

        Raises:
            TopicError: the backend does not exist, or can't be read.
        """


def check_name(kind: str, name: str) -> str:
    """Return a valid name of a topic or group.

    Raises:
        ConfigError: the name has invalid characters, is too long, or begins with a dot.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{kind} name {name!r:.220} can't be used: use 1 to 200 of A-Z, a-z, 0-9, '.', '_', '-', no leading dot"
        )
    return name


def write_names(names: Sequence[str], longest: int) -> str:
    """Return as many names of consumers as fit into a number of bytes, as JSON; empty without any."""
    kept = list(names)
    while kept and len(text := json.dumps(kept, separators=(",", ":"))) > longest:
        kept.pop()
    return text if kept else ""


def read_names(text: str) -> tuple[str, ...]:
    """Return the names in a text of ``write_names``; none of another text."""
    try:
        names = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(str(name) for name in names) if isinstance(names, list) else ()


def uptime() -> float:
    """Return the seconds since the machine's start, including suspension; equal in all processes."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)
