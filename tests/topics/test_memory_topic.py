"""The topic in memory keeps the contract of the others, and a test's clock."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from balog.testing.contracts import TopicContract
from balog.testing.contracts.topic_fixtures import messages
from balog.topics import Topics
from balog.topics.memory import MemoryTopics
from tests.waiting import Clock


class TestMemoryTopicKeepsTheContract(TopicContract):
    shares_with_processes = False
    survives_fork = False

    @pytest.fixture
    def url(self) -> str:
        return "memory:"

    @pytest.fixture
    def backend(self) -> Iterator[Topics]:
        with MemoryTopics() as backend:
            yield backend

    def another(self, url: str, backend: Topics) -> AbstractContextManager[Topics]:
        return nullcontext(backend)


def test_a_lease_runs_out_by_the_clock_that_was_given(clock: Clock) -> None:
    topic = MemoryTopics(clock).topic("t")
    topic.publish(messages("a"))
    topic.receive("g", lease=3600)
    clock.now += 3599
    assert topic.receive("g") == []
    clock.now += 1
    assert [(message.id, message.attempts) for message in topic.receive("g")] == [("a", 2)]


def test_homes_share_nothing() -> None:
    MemoryTopics().topic("t").publish(messages("a"))
    assert MemoryTopics().names() == []


def test_a_body_that_the_publisher_changes_later_stays_what_it_was() -> None:
    topic = MemoryTopics().topic("t")
    body = bytearray(b"before")
    topic.publish([type(messages("a")[0])("a", body)])  # type: ignore[arg-type]
    body[:] = b"after!"
    assert topic.receive("g")[0].body == b"before"
