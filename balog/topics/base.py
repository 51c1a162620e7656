"""What every topic is: a small interface that SQLite files, queues and logs can all keep."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal, NamedTuple, TypeVar

from msgspec import Struct

from balog.errors import ConfigError

__all__ = [
    "DEFAULT_LEASE",
    "DeadLetter",
    "Generation",
    "GivenUp",
    "GroupState",
    "Message",
    "Received",
    "Topic",
    "TopicState",
    "Topics",
    "check_name",
]

DEFAULT_LEASE = 30.0
"""Seconds that a received message belongs to its receiver, who extends the lease while it works."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")

Self = TypeVar("Self", bound="_Closing")


class Message(Struct, frozen=True):
    """What is published.

    ``id`` is its identity: a topic that keeps ids (``Topic.keeps_ids``) and holds this one does not store it again.
    ``key`` is what must keep its order where a home keeps order only by key (Kafka's partitions, SQS's message groups).
    """

    id: str
    body: bytes
    key: str | None = None


class Generation(NamedTuple):
    """Which replay and which redrive a delivery belongs to; a later generation is larger.

    What a consumer did in an earlier generation does not count as an attempt in a later one.

    Attributes:
        replay: the number of the group's last :meth:`Topic.seek`; 0 before the first one.
        redrive: the number of the redrive that brought the message back; 0 for one that was not redriven.
    """

    replay: int = 0
    redrive: int = 0


class Received(Struct, frozen=True):
    """A message in the hands of a group.

    ``receipt`` stands for this one delivery. ``attempts`` is how often the message was handed to the group, this time
    included. ``published`` is in seconds since the epoch. ``key`` is the message's, where the home keeps it.
    """

    id: str
    body: bytes
    receipt: str
    attempts: int
    published: float
    key: str | None = None
    generation: Generation = Generation()


class DeadLetter(Struct, frozen=True):
    """A message that a group gave up.

    ``reason`` is one line, ``attempts`` how often the message was handed to the group, ``died`` in seconds since the
    epoch. ``consumers`` are those that gave it up, ``traceback`` what they raised; both are empty when no consumer ever
    had it. ``token`` names it to :meth:`Topic.redrive`.
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
    """A message that a group gives up, and what :class:`DeadLetter` will say of it."""

    received: Received
    reason: str
    consumers: tuple[str, ...] = ()
    traceback: str = ""


class GroupState(Struct, frozen=True):
    """How far a group is.

    ``position`` is the place of the last message that was handed out, in the topic's own counting. ``lag`` counts the
    messages that the group never received, ``in_flight`` those under a lease, ``waiting`` those that were received,
    not acked, and will be handed out again, ``dead`` the dead letters.
    """

    name: str
    position: int
    lag: int
    in_flight: int
    waiting: int
    dead: int

    @property
    def pending(self) -> int:
        """Messages that the group has neither acked nor given up."""
        return self.lag + self.in_flight + self.waiting


class TopicState(Struct, frozen=True):
    """What a topic holds: messages, the bytes of their bodies, the oldest's time (seconds since the epoch), groups."""

    name: str
    messages: int
    bytes: int
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
    """Messages in the order of their publishing, each handed to every group until the group acks it.

    Delivery is at least once: a message whose lease ran out is handed out again. Every method may be called from any
    thread. All raise :class:`balog.errors.TopicError`, whose ``retryable`` tells whether trying again can help.

    Attributes:
        keeps_groups: each group gets every message. False for a queue, where all groups are the same one.
        keeps_order: messages come in the order of their publishing. False: only those of one key do, or none.
        one_receiver: messages of one key are handed out in order, later ones also while earlier ones are in hand. So
            only one thread of a process may receive, or two could swap what they got.
        keeps_ids: an id that was published is not stored again, so a message is never two.
        counts_attempts: a release with ``attempted=False`` takes the delivery back. False: every delivery counts.
        patience: seconds that ``receive`` is best asked to wait when there is nothing: also how long a stop may take.
    """

    name: str
    keeps_groups: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True
    one_receiver: ClassVar[bool] = True
    keeps_ids: ClassVar[bool] = True
    counts_attempts: ClassVar[bool] = True
    patience: ClassVar[float] = 0.5

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the topic is there; one that is not is made when it is first published to."""

    @abstractmethod
    def publish(self, messages: Iterable[Message]) -> int:
        """Store messages durably, all or none, and return the number that the topic did not hold already."""

    def publish_new(self, messages: Sequence[Message]) -> set[str] | None:
        """Store messages as ``publish`` does, and return the ids that the topic did not hold already.

        Returns:
            None where the home keeps no ids, and cannot tell.
        """
        self.publish(messages)
        return None

    @abstractmethod
    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Receive messages for a group, oldest first. A new group begins at the oldest message of the topic.

        Args:
            limit: at most so many; large bodies may make it fewer.
            wait: seconds to wait for the first one.
            lease: seconds until a message that was not acked is handed out again.
        """

    @abstractmethod
    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Mark messages as handled and return the number that this changed; a stale receipt changes nothing."""

    @abstractmethod
    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Release messages, to be delivered again after ``delay`` seconds. Return how many had a valid receipt.

        Args:
            attempted: False when nobody tried to handle them: the delivery is then not counted as an attempt.
        """

    @abstractmethod
    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Extend leases to ``lease`` seconds from now. Return how many had a valid receipt."""

    def dead_letter(
        self,
        group: str,
        received: Sequence[Received],
        reason: str,
        *,
        consumers: Sequence[str] = (),
        traceback: str = "",
    ) -> int:
        """Set messages aside, all for one reason; see :meth:`dead_letter_each`."""
        return self.dead_letter_each(group, [GivenUp(one, reason, tuple(consumers), traceback) for one in received])

    @abstractmethod
    def dead_letter_each(self, group: str, given_up: Sequence[GivenUp]) -> int:
        """Set messages aside, each for a reason of its own; the number that this changed.

        What :class:`DeadLetter` says of each is kept. Many go at once whatever their reasons: those of a handler that
        fails often are seldom the same, and acks wait behind their dead letters.
        """

    @abstractmethod
    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Return a group's dead letters, oldest first."""

    @abstractmethod
    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Redrive dead letters to their group, and to no other, each as a message without attempts.

        Each message has a larger ``Generation.redrive`` than the letter had.

        A letter is gone from the dead letters only when the message is back, so that a kill loses neither.

        Args:
            decide: gives the body to send, as it was or mended, or None to leave the letter where it is. Called once
                for each letter, oldest first where the home keeps order.
            limit: look at most at so many letters.

        Returns:
            the number of messages that are back.
        """

    @abstractmethod
    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Look at messages without taking them from any group, in the order of their publishing.

        Their receipts are good for nothing.

        Args:
            newest: the newest ones instead of the oldest. Where a home can't tell, it gives what it has.
        """

    @abstractmethod
    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Move a group to the oldest message, past the newest, or to the first one at or after a time.

        Leases and attempts of the group are forgotten, and ``Generation.replay`` grows for what it receives from now
        on. No consumer of the group may be running.

        Args:
            to: or seconds since the epoch.

        Raises:
            TopicError: a queue has no positions; a consumer is running.
        """

    @abstractmethod
    def group_state(self, group: str) -> GroupState:
        """Return the state of a group. Cheap enough to call whenever nothing is received."""

    @abstractmethod
    def describe(self) -> TopicState:
        """Return the state of the topic. This may read all messages."""


class Topics(_Closing):
    """A home that holds topics by name."""

    url: str

    @abstractmethod
    def topic(self, name: str) -> Topic:
        """Return the topic of that name, whether it exists yet or not.

        Raises:
            ConfigError: not a name that a topic can have.
        """

    @abstractmethod
    def names(self) -> list[str]:
        """List the topics that exist, sorted.

        Raises:
            TopicError: the home does not exist or can't be read.
        """


def check_name(kind: str, name: str) -> str:
    """Return the name back when a topic or group can have it.

    Raises:
        ConfigError: it has other characters, is too long, or begins with a dot.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{kind} name {name!r:.220} can't be used: want 1 to 200 letters, digits, '.', '_' or '-', no dot in front"
        )
    return name
