"""Callbacks on topics of real servers: what fails is tried again, what is hopeless dies and is redriven."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from balog.event import Event, encode
from balog.service.document import Callback
from balog.service.jobs.callbacks import CallbackJob
from balog.sinks.base import Retrying
from balog.topics import Message, open_topics
from tests.services.servers.elasticmq import SqsServer
from tests.services.servers.kafka import KafkaServer
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.waiting import wait_for

pytestmark = pytest.mark.service


@pytest.fixture(params=["kafka", "sqs"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if request.param == "kafka":
        kafka: KafkaServer = request.getfixturevalue("kafka")
        return kafka.url(partitions=2)
    sqs: SqsServer = request.getfixturevalue("elasticmq")
    sqs.environment(monkeypatch)
    return sqs.url


@pytest.fixture
def receiver() -> Iterator[HttpStandIn]:
    with HttpStandIn() as server:
        yield server


def test_each_event_is_posted_and_the_hopeless_one_dies_and_is_redriven(url: str, receiver: HttpStandIn) -> None:
    name = f"t{uuid4().hex[:12]}"
    events = [Event.new("shop.order", {"cls_type": "order", "n": n}) for n in range(60)]
    failed: set[str] = set()
    is_mended = False

    def respond(request: object) -> Answer:
        body = request.body  # type: ignore[attr-defined]
        n, id = json.loads(body)["payload"]["n"], json.loads(body)["header"]["id"]
        if n == 7:
            return Answer(200 if is_mended else 422)
        if n % 10 == 0 and id not in failed:
            failed.add(id)
            return Answer(503)
        return Answer()

    receiver.respond = respond
    said: list[str] = []

    def start() -> CallbackJob:
        retry = Retrying(first=0.3, longest=1.0)
        options = {"private": True, "retry": retry, "give_up": 2.0}
        job = CallbackJob(
            Callback(name="partner", source=name, url=receiver.url, **options),  # type: ignore[arg-type]
            url,
            said.append,
        )
        job.start()
        return job

    def posted() -> set[str]:
        return {request.headers["webhook-id"] for request in list(receiver.requests)}

    with open_topics(url) as home:
        topic = home.topic(name)
        topic.publish([Message(event.header.id, encode(event), f"k{n % 5}") for n, event in enumerate(events)])
        job = start()
        wait_for(lambda: job.status().done >= 20)
        job.stop(10)
        assert job.status().state == "stopped"
        again = start()
        try:
            wait_for(lambda: again.status().dead == 1, 120)
            assert posted() == {event.header.id for event in events}
            wait_for(lambda: topic.group_state("callback.partner").pending == 0)
            [letter] = topic.dead_letters("callback.partner")
            assert (letter.id, letter.consumers) == (events[7].header.id, ("callback.partner",))
            assert letter.reason.endswith("answered 422")
            is_mended = True
            before = again.status().done
            assert topic.redrive("callback.partner", lambda one: one.body) == 1
            wait_for(lambda: again.status().done == before + 1)
            assert topic.dead_letters("callback.partner") == []
        finally:
            again.stop(10)
