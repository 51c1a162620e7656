"""One step of the drain, when what comes after the move fails."""

from collections.abc import Sequence
from typing import Any

import pytest
from failing_topics import FailingTopics

from balog.common.errors import TopicError
from balog.service.intake.drain import Drain
from balog.service.intake.fallback import GROUP, Fallback
from balog.topics import Message
from balog.topics.memory import MemoryTopic


def failing_once(monkeypatch: pytest.MonkeyPatch, topic: MemoryTopic, method: str) -> None:
    real = getattr(topic, method)
    failed: list[str] = []

    def call(*given: Any) -> Any:
        if not failed:
            failed.append(method)
            raise TopicError("the disk takes no more")
        return real(*given)

    monkeypatch.setattr(topic, method, call)


def homes(ids: Sequence[str]) -> tuple[FailingTopics, MemoryTopic, Drain]:
    home, spare = FailingTopics(keeps_ids=False), FailingTopics()
    waiting = spare.topic("fallback--order")
    waiting.publish([Message(id, b"{}") for id in ids])
    return home, waiting, Drain("order", home, Fallback(spare), set())


def test_what_could_not_be_acked_is_not_moved_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    home, waiting, drain = homes(["a", "b", "c"])
    failing_once(monkeypatch, waiting, "ack")
    with pytest.raises(TopicError):
        drain.step(10)
    assert drain.step(10) == (3, False)
    assert drain.step(10) == (0, True)
    assert home.stored == ["a", "b", "c"]


def test_what_is_refused_for_good_is_a_dead_letter_also_when_that_fails_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, waiting, drain = homes(["a", "b", "c"])
    home.refused = {"b"}
    failing_once(monkeypatch, waiting, "dead_letter_each")
    with pytest.raises(TopicError):
        drain.step(10)
    drain.step(10)
    assert drain.step(10) == (0, True)
    assert sorted(home.stored) == ["a", "c"]
    assert [letter.id for letter in waiting.dead_letters(GROUP)] == ["b"]


def test_what_a_topic_does_not_take_is_given_back_in_its_place() -> None:
    home, _, drain = homes(["a", "b", "c"])
    home.down = "down"
    with pytest.raises(TopicError):
        drain.step(2)
    home.down = ""
    while not drain.step(2)[1]:
        pass
    assert home.stored == ["a", "b", "c"]


def test_where_nothing_ever_was_there_is_nothing() -> None:
    assert Drain("order", FailingTopics(), Fallback(FailingTopics()), set()).step(5) == (0, True)
