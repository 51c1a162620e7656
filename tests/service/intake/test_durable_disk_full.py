"""A disk without room: nothing is acked that is not stored, nothing is half stored, and with room it goes on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from balog.common.errors import TopicError
from balog.event import Event, encode
from balog.service.intake.batch import AcceptedEvent
from balog.service.intake.fallback import open_fallback
from balog.service.intake.intake import EventIntake
from balog.topics.local import LocalTopic, LocalTopics

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


def batch(number: int) -> list[AcceptedEvent]:
    events = [Event.new("tests", {"cls_type": "order", "n": number, "text": "x" * 2000}) for _ in range(10)]
    return [AcceptedEvent(event, encode(event)) for event in events]


def ids(events: list[AcceptedEvent]) -> list[str]:
    return [one.event.header.id for one in events]


def let_grow(topic: LocalTopic, pages: int | None) -> None:
    """Let a topic's file have so many pages more than now; None: as many as it likes."""
    with topic._file.read() as connection:
        now = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {2**30 if pages is None else now + pages}")


async def fill(intake: EventIntake) -> list[str]:
    """Send until nothing more is taken; give the ids that were acked."""
    acked: list[str] = []
    for number in range(1000):
        events = batch(number)
        statuses = {one.status for one in await intake.put(events)}
        assert len(statuses) == 1  # all of a topic or none
        if statuses == {503}:
            return acked
        acked += ids(events)
    raise AssertionError("there is always room")


def stored(topic: LocalTopic) -> list[str]:
    return [one.id for one in topic.peek(100_000)]


@pytest.fixture
async def at_work(tmp_path: Path) -> AsyncIterator[tuple[EventIntake, LocalTopic, LocalTopic]]:
    """An intake, its topic, and the fallback of the topic."""
    with LocalTopics(tmp_path / "topics") as home:
        fallback = open_fallback(f"local:{tmp_path / 'fallback'}", home.url)
        intake = EventIntake(home, fallback=fallback)
        await intake.start()
        spare = fallback.topic("order")
        assert isinstance(spare, LocalTopic)
        with spare._file.write(create=True):
            pass
        yield intake, home.topic("order"), spare
        assert await intake.stop(5) == []
        fallback.close()


async def until_direct(intake: EventIntake) -> None:
    while intake.state().topics["order"].store == "fallback":
        await asyncio.sleep(0.02)


async def test_with_no_room_anywhere_events_are_refused_and_with_room_taken_again(at_work):
    intake, topic, spare = at_work
    await intake.put(first := batch(0))
    let_grow(topic, 20)
    let_grow(spare, 40)
    acked = ids(first) + await fill(intake)
    assert set(stored(topic)) | set(stored(spare)) == set(acked)
    assert "the disk takes no more" in intake.error
    let_grow(topic, None)
    let_grow(spare, None)
    while (await intake.put(more := batch(1)))[0].status != 202:
        await asyncio.sleep(0.02)
    await until_direct(intake)
    assert sorted(stored(topic)) == sorted([*acked, *ids(more)])


async def test_a_fallback_that_is_full_is_drained_without_more_room(at_work, monkeypatch):
    intake, topic, spare = at_work

    def fail(messages: object) -> set[str]:
        raise TopicError("down")

    with monkeypatch.context() as patch:
        patch.setattr(topic, "publish_new", fail)
        await intake.put(first := batch(0))
        let_grow(spare, 400)
        acked = ids(first) + await fill(intake)
        assert len(acked) > 300
    await until_direct(intake)
    assert stored(topic) == acked
    assert stored(spare) == []
