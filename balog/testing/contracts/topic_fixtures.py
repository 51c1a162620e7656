"""What the parts of the topic contract share: fixtures, abilities of a backend, and helpers for its own tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from balog.testing.contracts.abilities import AbilityTests
from balog.topics import Message, Received, Topic, Topics, open_topics


def messages(*ids: str) -> list[Message]:
    """Return a message for each id."""
    return [Message(id, f"body of {id}".encode()) for id in ids]


def ids(received: Sequence[Received]) -> list[str]:
    """Return the ids of received messages."""
    return [message.id for message in received]


def take(topic: Topic, count: int, group: str = "g", *, lease: float = 60.0, seconds: float = 60.0) -> list[Received]:
    """Receive until there are ``count`` messages, or the time is over: a backend may deliver a few at a time."""
    taken: list[Received] = []
    deadline = time.monotonic() + seconds
    while len(taken) < count and time.monotonic() < deadline:
        taken += topic.receive(group, limit=count - len(taken), wait=1.0, lease=lease)
    return taken


def ack(topic: Topic, received: Sequence[Received], group: str = "g") -> None:
    """Ack messages."""
    topic.ack(group, received)


def eventually(is_true: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Poll a condition, because a server's counts may be late. Return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class TopicFixtures(AbilityTests):
    """The abilities and limits of a backend, and the fixtures of its tests.

    Attributes:
        keeps_groups: as declared by the backend's topics, like ``keeps_order``, ``keeps_ids`` and ``counts_attempts``.
        lease: the shortest lease of the backend, in seconds.
        delay: a short delay of a release, in seconds.
        idle_wait: seconds of ``wait`` in which ``receive`` is sure to find a ready message.
        large_body: bytes of a body that the backend must accept.
        shared_messages: number of messages that several processes share.
        longest_name: characters of the longest valid name of a topic.
        name_suffixes: ends of valid names.
        keeps_keys: whether a received message has its key.
        keeps_key_order: whether messages of one key are received in order.
        detects_stale_receipts: whether a receipt is invalid after it was used, and after a redelivery.
        counts_exactly: whether lag, messages in flight and waiting messages are counted exactly and apart.
        delivers_once: whether no message is delivered to two processes while its lease runs.
        shares_with_processes: whether another process can open the same backend.
        survives_fork: whether a child can go on with a topic that its parent has opened.
        can_seek: whether a group can move to another position.
    """

    keeps_groups: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True
    keeps_ids: ClassVar[bool] = True
    counts_attempts: ClassVar[bool] = True
    lease: ClassVar[float] = 0.2
    delay: ClassVar[float] = 0.4
    idle_wait: ClassVar[float] = 0.05
    large_body: ClassVar[int] = 1024 * 1024
    shared_messages: ClassVar[int] = 400
    longest_name: ClassVar[int] = 200
    name_suffixes: ClassVar[tuple[str, ...]] = ("", ".sync.done", "_x", "-X0")
    keeps_keys: ClassVar[bool] = True
    keeps_key_order: ClassVar[bool] = True
    detects_stale_receipts: ClassVar[bool] = True
    counts_exactly: ClassVar[bool] = True
    delivers_once: ClassVar[bool] = True
    shares_with_processes: ClassVar[bool] = True
    survives_fork: ClassVar[bool] = True
    can_seek: ClassVar[bool] = True

    @pytest.fixture
    def backend(self, url: str) -> Iterator[Topics]:
        """The backend under test, opened by its URL."""
        with open_topics(url) as backend:
            yield backend

    @pytest.fixture
    def name(self) -> str:
        """The name of a topic that does not exist; a server may be shared, so each test has its own."""
        return self.new_name()

    @pytest.fixture
    def topic(self, backend: Topics, name: str) -> Topic:
        """A topic that does not exist yet."""
        return backend.topic(name)

    def new_name(self) -> str:
        """Return an unused name of a topic."""
        return f"t{uuid4().hex[:16]}"

    def valid_names(self) -> list[str]:
        """Return valid names of topics, with the longest one."""
        return [*(self.new_name() + end for end in self.name_suffixes), self.new_name().ljust(self.longest_name, "x")]

    def key_of(self, id: str) -> str | None:
        """Return a key for a message that no other message may block, in a backend that blocks by key."""
        return None

    def another(self, url: str, backend: Topics) -> Any:
        """Open the backend once more, as another process would. Return a context manager of it."""
        return open_topics(url)

    def is_empty(self, topic: Topic, group: str = "g") -> bool:
        """Return whether a group receives nothing."""
        return topic.receive(group, wait=self.idle_wait) == []

    def wait_past_lease(self) -> None:
        """Sleep until the shortest lease has expired."""
        time.sleep(self.lease * 1.5)

    def is_in_order(self, topic: Topic, got: list[str], expected: list[str]) -> bool:
        """Return whether ids are as expected, in their order if the topic keeps it."""
        return got == expected if topic.keeps_order else sorted(got) == sorted(expected)
