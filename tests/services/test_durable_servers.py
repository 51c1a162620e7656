"""The durable path on real servers that die and come back: what was acked is downstream."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from balog.event import Event, encode
from balog.service.intake.batch import AcceptedEvent
from balog.service.intake.fallback import open_fallback
from balog.service.intake.intake import EventIntake
from balog.topics import Message, Topic, open_topics
from tests.services.servers.elasticmq import running_sqs, set_credentials
from tests.services.servers.kafka import running_kafka

pytestmark = pytest.mark.service

TIMEOUT = 3.0  # seconds; a disk that other tests use needs more than one for an fsync


def batch(number: int) -> list[AcceptedEvent]:
    events = [Event.new("tests", {"cls_type": "order", "n": number}, context={"run_id": "r"}) for _ in range(10)]
    return [AcceptedEvent(event, encode(event)) for event in events]


def received(topic: Topic, wanted: set[str]) -> list[str]:
    """Take what is there until all that is wanted came."""
    found: list[str] = []
    while not wanted <= set(found):
        some = topic.receive("g", limit=500, wait=1.0)
        topic.ack("g", some)
        found += [one.id for one in some]
    return found


async def outage(url: str, folder: Path, stop: Callable[[], object], up: Callable[[], object]) -> list[str]:
    """Send before, while and after the topics are away; give the ids that were acked, in their order."""
    acked: list[str] = []
    stores: list[str] = []

    async def send(intake: EventIntake, number: int) -> None:
        events = batch(number)
        for one, placed in zip(events, await intake.put(events)):
            assert placed.status == 202
            acked.append(one.event.header.id)
            stores.append(placed.store)

    with open_topics(url) as home:
        fallback = open_fallback(f"local:{folder / 'fallback'}", url)
        intake = EventIntake(home, fallback=fallback, timeout=TIMEOUT)
        await intake.start()
        made = batch(0)[0]  # making a topic takes servers longer than the timeout here
        await asyncio.to_thread(home.topic("order").publish, [Message(made.event.header.id, made.body)])
        acked.append(made.event.header.id)
        await send(intake, 0)
        assert stores == ["topics"] * 10
        await asyncio.to_thread(stop)
        for number in range(1, 30):
            await send(intake, number)
        assert set(stores[10:]) == {"fallback"}
        again = batch(0)
        placed = [*await intake.put(again), *await intake.put(again)]  # a client that heard nothing
        assert {one.status for one in placed} == {202}
        acked += [one.event.header.id for one in again]
        await asyncio.to_thread(up)
        number = 30
        while intake.state().topics["order"].store == "fallback":
            await send(intake, number)
            number += 1
            await asyncio.sleep(0.1)
        await send(intake, number)
        assert stores[-1] == "topics"
        assert await intake.stop(20) == []
        assert fallback.waiting() == {}
        fallback.close()
    return acked


def run(test: Any) -> list[str]:
    result: list[str] = asyncio.run(asyncio.wait_for(test, 300))
    return result


def test_kafka_dies_under_load_and_is_back(tmp_path: Path) -> None:
    with running_kafka(tmp_path) as server:
        url = server.url(partitions=1)
        acked = run(outage(url, tmp_path, server.stop, server.up))
        with open_topics(url) as home:
            found = received(home.topic("order"), set(acked))
    # What it took just before it died, and could not tell, may be there once more: its first copy keeps the order.
    assert list(dict.fromkeys(found)) == acked
    assert len(found) - len(acked) <= 20


def test_sqs_is_away_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    with running_sqs(tmp_path) as server:
        acked = run(outage(server.url, tmp_path, server.stop, server.up))
        with open_topics(server.url) as home:
            # ElasticMQ writes down what it has a little later than it answers: what was sent just before may be lost.
            found = received(home.topic("order"), set(acked[11:]))
    assert set(acked[11:]) <= set(found) <= set(acked)
    assert len(found) - len(set(found)) <= 20
