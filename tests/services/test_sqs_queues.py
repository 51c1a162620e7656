"""What is SQS's own: redrive policies, FIFO queues, SNS, queues that are made or not, an engine whose server dies."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from balog.common.errors import TopicError
from balog.consumers import Consumer, ConsumerHub
from balog.consumers.sqs import SQSEngine
from balog.event import Event, encode
from balog.testing.contracts.topic_fixtures import eventually, ids, messages, take
from balog.topics import Message, Topic, Topics, open_topics
from balog.topics.sqs import SqsTopic
from tests.services.servers.elasticmq import SqsServer, running_sqs

pytestmark = pytest.mark.service


@pytest.fixture(scope="session")
def server(elasticmq: SqsServer) -> SqsServer:
    return elasticmq


@pytest.fixture(autouse=True)
def environment(server: SqsServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server.environment(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(SqsTopic, "poll_timeout", 1.0)  # seconds that an engine waits until it finds a queue empty


@pytest.fixture
def home(server: SqsServer) -> Iterator[Topics]:
    with open_topics(server.url) as home:
        yield home


@pytest.fixture
def client(server: SqsServer) -> Any:
    return server.client()


@pytest.fixture
def name() -> str:
    return f"t{uuid4().hex[:16]}"


def make(client: Any, name: str, **attributes: str) -> str:
    return str(client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


def arn(client: Any, url: str) -> str:
    return str(client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])


@pytest.fixture
def graveyard(client: Any) -> str:
    return make(client, f"graveyard{uuid4().hex[:8]}")


@pytest.fixture
def policed(home: Topics, client: Any, name: str, graveyard: str) -> Topic:
    make(client, name, RedrivePolicy=json.dumps({"deadLetterTargetArn": arn(client, graveyard), "maxReceiveCount": 2}))
    return home.topic(name)


class TestRedrivePolicy:
    def test_dead_letters_go_where_the_policy_says(
        self, policed: Topic, home: Topics, client: Any, graveyard: str
    ) -> None:
        policed.publish(messages("a"))
        policed.dead_letter("g", take(policed, 1), "why", consumers=["c"], traceback="t")
        (raw,) = client.receive_message(
            QueueUrl=graveyard, MessageAttributeNames=["All"], VisibilityTimeout=0, WaitTimeSeconds=5
        )["Messages"]
        said = {name: value["StringValue"] for name, value in raw["MessageAttributes"].items()}
        assert raw["Body"] == "body of a"
        assert said == {
            "balog.id": "a",
            "balog.topic": policed.name,
            "balog.group": "g",
            "balog.reason": "why",
            "balog.attempts": "1",
            "balog.consumers": '["c"]',
            "balog.traceback": "t",
        }
        assert f"{policed.name}-dead" not in home.names()

    def test_letters_that_sqs_moved_there_are_read_and_come_back(self, policed: Topic) -> None:
        policed.publish(messages("a"))
        for _ in range(2):
            policed.release("g", take(policed, 1))
        assert policed.receive("g", wait=1) == []
        (letter,) = policed.dead_letters("g")
        assert (letter.id, letter.body, letter.attempts) == ("a", b"body of a", 2)
        assert letter.reason == "SQS moved it here: it was delivered too often without an ack"
        assert policed.redrive("g", lambda letter: letter.body) == 1
        (again,) = take(policed, 1)
        assert (again.id, again.attempts) == ("a", 1)

    def test_letters_of_another_queue_stay_its_own(
        self, policed: Topic, home: Topics, client: Any, graveyard: str
    ) -> None:
        other = f"t{uuid4().hex[:16]}"
        policy = {"deadLetterTargetArn": arn(client, graveyard), "maxReceiveCount": 2}
        make(client, other, RedrivePolicy=json.dumps(policy))
        for topic in (policed, home.topic(other)):
            topic.publish(messages(topic.name))
            topic.dead_letter("g", take(topic, 1), "why")
        assert [letter.id for letter in policed.dead_letters("g")] == [policed.name]
        assert policed.redrive("g", lambda letter: letter.body) == 1
        assert ids(take(policed, 1)) == [policed.name]
        assert [letter.id for letter in home.topic(other).dead_letters("g")] == [other]


class TestDeadLetters:
    def test_their_queue_keeps_them_as_long_as_sqs_does(self, home: Topics, client: Any, name: str) -> None:
        topic = home.topic(name)
        topic.publish(messages("a"))
        topic.dead_letter("g", take(topic, 1), "why")
        url = client.get_queue_url(QueueName=f"{name}-dead")["QueueUrl"]
        found = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert found.get("MessageRetentionPeriod", "1209600") == "1209600"  # ElasticMQ keeps none

    def test_many_are_redriven_each_once(self, home: Topics, name: str) -> None:
        topic = home.topic(name)
        wanted = [f"m{number}" for number in range(35)]
        topic.publish(messages(*wanted))
        topic.dead_letter("g", take(topic, 35), "why")
        seen: list[str] = []

        def decide(letter: Any) -> bytes | None:
            seen.append(letter.id)
            return letter.body if int(letter.id[1:]) % 2 else None

        assert topic.redrive("g", decide) == 17
        assert sorted(seen) == sorted(wanted)
        assert sorted(ids(take(topic, 17))) == sorted(wanted[1::2])
        assert eventually(lambda: topic.group_state("g").dead == 18)


class TestFifo:
    def test_a_key_that_waits_holds_up_no_other(self, home: Topics, name: str) -> None:
        topic = home.topic(f"{name}.fifo")
        topic.publish([Message("a1", b"", "a"), Message("a2", b"", "a"), Message("b1", b"", "b")])
        received = topic.receive("g", limit=1, wait=5)
        assert ids(received) == ["a1"]
        assert ids(take(topic, 1)) == ["b1"]
        topic.release("g", received, delay=2)
        assert topic.receive("g") == []
        assert ids(topic.receive("g", wait=20)) == ["a1", "a2"]

    def test_an_id_that_is_published_again_is_dropped(self, home: Topics, name: str) -> None:
        topic = home.topic(f"{name}.fifo")
        topic.publish(messages("a", "b"))
        topic.publish(messages("b", "c"))
        assert ids(take(topic, 3)) == ["a", "b", "c"]
        assert topic.group_state("g").pending == 3

    def test_an_id_may_die_and_come_back_as_often_as_it_likes(self, home: Topics, name: str) -> None:
        topic = home.topic(f"{name}.fifo")
        topic.publish([Message("a", b"x", "key")])
        for round in range(3):
            topic.dead_letter("g", take(topic, 1), f"death {round}")
            assert [letter.reason for letter in topic.dead_letters("g")] == [f"death {round}"]
            assert topic.redrive("g", lambda letter: letter.body) == 1
        (again,) = take(topic, 1)
        assert (again.id, again.body, again.key) == ("a", b"x", "key")
        assert f"{name}-dead.fifo" not in home.names()


class TestMaking:
    def test_a_home_that_makes_nothing_says_what_is_missing(self, server: SqsServer, home: Topics, name: str) -> None:
        with open_topics(f"{server.url}&create=no") as careful:
            with pytest.raises(TopicError, match=f"topic {name} .*: no such queue"):
                careful.topic(name).publish(messages("a"))
            home.topic(name).publish(messages("a"))
            topic = careful.topic(name)
            with pytest.raises(TopicError, match=f"dead letters in {name}-dead: no such queue"):
                topic.dead_letter("g", take(topic, 1), "why")
        assert name in home.names()
        assert topic.group_state("g").pending == 1

    def test_a_queue_that_is_there_is_taken_as_it_is(self, home: Topics, client: Any, name: str) -> None:
        url = make(client, name, VisibilityTimeout="77", DelaySeconds="0")
        home.topic(name).publish(messages("a"))
        found = client.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
        assert found["VisibilityTimeout"] == "77"

    def test_several_publishers_may_make_it_at_once(self, server: SqsServer, home: Topics, name: str) -> None:
        def publish(number: int) -> None:
            with open_topics(server.url) as other:
                other.topic(name).publish(messages(f"m{number}"))

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(publish, range(6)))
        assert sorted(ids(take(home.topic(name), 6))) == [f"m{number}" for number in range(6)]


def test_a_message_of_sns_is_handled_as_the_event_in_it(
    home: Topics, client: Any, name: str, server: SqsServer
) -> None:
    event = Event.new("tests", {"cls_type": "x"})
    url = make(client, name)
    envelope = {
        "Type": "Notification",
        "MessageId": "s1",
        "TopicArn": "arn:aws:sns:x",
        "Message": encode(event).decode(),
    }
    client.send_message(QueueUrl=url, MessageBody=json.dumps(envelope))
    client.send_message(QueueUrl=url, MessageBody=encode(event).decode())  # by raw delivery, once more
    handled: list[str] = []
    counts = run_engine(server, name, handled.append).run(until_empty=True)
    assert handled == [event.header.id]
    assert (counts.succeeded, counts.duplicates) == (1, 1)


def run_engine(server: SqsServer, topic: str, handle: Any, **options: Any) -> SQSEngine:
    hub = ConsumerHub()
    hub.add(Consumer(lambda settings, event: handle(event.header.id), topic, name="c"))
    return SQSEngine(hub, "elasticmq", endpoint=server.endpoint, **options)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[SqsServer]:
    with running_sqs(tmp_path) as server:
        yield server


def test_an_engine_goes_on_when_its_server_died_and_is_back(mortal: SqsServer, name: str) -> None:
    events = [Event.new("tests", {"cls_type": "x", "n": number}) for number in range(200)]
    wanted = {event.header.id for event in events}
    handled: Counter[str] = Counter()
    halfway = threading.Event()

    def handle(id: str) -> None:
        handled[id] += 1
        time.sleep(0.01)
        if len(handled) >= 40:
            halfway.set()

    with open_topics(mortal.url) as home:
        home.topic(name).publish([Message(event.header.id, encode(event)) for event in events])
        time.sleep(1)  # the server writes its messages down a little later than it answers
        engine = run_engine(mortal, name, handle, lease=5.0, pollers=2)
        thread = threading.Thread(target=engine.run)
        thread.start()
        assert halfway.wait(60)
        mortal.stop()
        time.sleep(1)
        mortal.up()
        assert eventually(lambda: set(handled) == wanted, 90)
        assert eventually(lambda: home.topic(name).group_state("balog").pending == 0, 60)
        engine.stop()
        thread.join(60)
        assert not thread.is_alive()
        assert home.topic(name).group_state("balog").dead == 0
    assert set(handled.values()) == {1}
