"""The engine on a real Kafka: each event handled once, the poisonous ones dead, until nothing is left."""

from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from balog.cli import main
from balog.consumers import Consumer, ConsumerHub
from balog.consumers.kafka import KafkaEngine
from balog.event import Event, encode
from balog.topics import Message, open_topics
from tests.services.servers.kafka import KafkaServer

pytestmark = pytest.mark.service


def test_every_good_event_is_handled_once_and_every_poisonous_one_is_dead(
    kafka: KafkaServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"t{uuid4().hex[:12]}"
    events = [Event.new("shop.orders", {"cls_type": "order", "n": n}) for n in range(300)]
    with open_topics(kafka.url(partitions=3)) as home:
        published = [Message(event.header.id, encode(event), f"k{n % 5}") for n, event in enumerate(events)]
        home.topic(name).publish(published)
        home.topic(name).publish([Message("noise", b"no event")])
    succeeded: Counter[int] = Counter()

    def handle(_: Any, event: Event) -> None:
        if event.payload["n"] % 30 == 7:
            raise ValueError("poison")
        succeeded[event.payload["n"]] += 1

    hub = ConsumerHub()
    hub.add(Consumer(handle, name, "order", name="orders"))
    counts = KafkaEngine(hub, kafka.servers, "billing", max_attempts=2).run(until_empty=True)
    poison = {n for n in range(300) if n % 30 == 7}
    assert succeeded == Counter(set(range(300)) - poison)
    assert (counts.succeeded, counts.dead) == (300 - len(poison), len(poison) + 1)
    with open_topics(kafka.url()) as home:
        letters = home.topic(name).dead_letters("billing")
        assert {letter.id for letter in letters} == {"noise", *(events[n].header.id for n in poison)}
        assert {letter.consumers for letter in letters if letter.id != "noise"} == {("orders",)}
        assert home.topic(name).group_state("billing").pending == 0


def test_the_headers_of_a_dead_letter_have_no_secrets_of_the_handlers_error(
    kafka: KafkaServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name, text = f"t{uuid4().hex[:12]}", "postgres://svc:hunter2pw@db/x refused, Authorization: Bearer abcDEF123456ghi"
    with open_topics(kafka.url(partitions=1)) as home:
        home.topic(name).publish([Message("LG1", encode(Event.new("shop.orders", {})))])

    def fail(_: Any, event: Event) -> None:
        raise ConnectionError(text)

    hub = ConsumerHub()
    hub.add(Consumer(fail, name, name="orders"))
    KafkaEngine(hub, kafka.servers, "billing", max_attempts=1).run(until_empty=True)
    with open_topics(kafka.url()) as home:
        [letter] = home.topic(name).dead_letters("billing")
    found = f"{letter.reason}\n{letter.traceback}"
    assert "hunter2pw" not in found
    assert "abcDEF123456ghi" not in found
    assert "refused" in letter.reason
    assert "refused" in letter.traceback


@pytest.mark.parametrize("how", ["by balog topics offsets", "by another tool"])
def test_a_replay_runs_handlers_again_for_what_the_ledger_knows(
    kafka: KafkaServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Given a group that was moved back, then each event is handled once more, and a copy of one is a duplicate."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name = f"t{uuid4().hex[:12]}"
    events = [Event.new("shop.orders", {"cls_type": "order", "n": n}) for n in range(3)]
    with open_topics(kafka.url(partitions=1)) as home:
        home.topic(name).publish([Message(event.header.id, encode(event)) for event in [*events, events[0]]])
    handled: Counter[int] = Counter()
    hub = ConsumerHub()
    hub.add(Consumer(lambda settings, event: handled.update([event.payload["n"]]), name, name="orders"))
    for number in (1, 2):
        counts = KafkaEngine(hub, kafka.servers, "billing").run(until_empty=True)
        assert (counts.received, counts.succeeded, counts.duplicates) == (4, 3, 1)
        assert handled == {0: number, 1: number, 2: number}
        if how == "by another tool":
            admin = AdminClient({"bootstrap.servers": kafka.servers})
            moved = ConsumerGroupTopicPartitions("billing", [TopicPartition(name, 0, 0)])
            admin.alter_consumer_group_offsets([moved])["billing"].result()
        else:
            command = ["topics", "offsets", "--topics", kafka.url(), name, "--group", "billing", "--to", "earliest"]
            done = CliRunner().invoke(main, command)
            assert done.exit_code == 0, done.output
