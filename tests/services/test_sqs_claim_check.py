"""Bodies that a queue is too small for: ElasticMQ for the queue, S3Proxy for the bodies."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from balog.common.errors import TopicError
from balog.consumers import Consumer, ConsumerHub
from balog.consumers.sqs import SQSEngine
from balog.event import Event, encode
from balog.testing.contracts.topic_fixtures import ids, take
from balog.topics import Message, Topic, Topics, open_topics
from balog.topics.sqs import SqsTopic, account
from balog.topics.sqs.claim_check import MAX_BODY_BYTES
from tests.services.servers.elasticmq import SqsServer, bare_client
from tests.services.servers.s3 import KEY, SECRET, S3Server, running_s3

pytestmark = pytest.mark.service

LARGE = 2_000_000
EXTENDED = "ExtendedPayloadSize"


@pytest.fixture(scope="session")
def sqs(elasticmq: SqsServer) -> SqsServer:
    return elasticmq


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server, tmp_path: Path) -> Path:
    return s3.bucket(f"b{abs(hash(tmp_path))}")


@pytest.fixture
def url(sqs: SqsServer, s3: S3Server, bucket: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    sqs.environment(monkeypatch)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return f"{sqs.url}&claim_check=s3://{bucket.name}/claims/x&s3_endpoint={quote(s3.url, safe='')}"


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqsTopic, "poll_timeout", 1.0)  # seconds that an engine waits until it finds a queue empty


@pytest.fixture
def home(url: str) -> Iterator[Topics]:
    with open_topics(url) as home:
        yield home


@pytest.fixture
def topic(home: Topics, tmp_path: Path) -> Topic:
    return home.topic(f"t{abs(hash(tmp_path))}")


def objects(bucket: Path) -> list[Path]:
    return sorted(path for path in bucket.rglob("*") if path.is_file() and not path.name.startswith("."))


def run(topic: Topic, url: str, handled: list[str], **options: Any) -> Any:
    hub = ConsumerHub()
    hub.add(Consumer(lambda settings, event: handled.append(event.header.id), topic.name, name="c"))
    parts = dict(part.split("=") for part in url.partition("?")[2].split("&"))
    engine = SQSEngine(
        hub,
        "eu-central-1",
        endpoint=parts["endpoint"].replace("%3A", ":").replace("%2F", "/"),
        s3_endpoint=parts["s3_endpoint"].replace("%3A", ":").replace("%2F", "/"),
        claim_check=parts["claim_check"],
        **options,
    )
    return engine.run(until_empty=True)


def test_large_bodies_travel_by_s3_and_are_gone_after_the_ack(topic: Topic, bucket: Path) -> None:
    bodies = {"text": b"x" * LARGE, "bytes": os.urandom(LARGE), "small": b"small", "huge": b"y" * 20_000_000}
    topic.publish([Message(id, body, "key") for id, body in bodies.items()])
    assert len(objects(bucket)) == 3
    assert all(path.is_relative_to(bucket / "claims" / "x") for path in objects(bucket))
    received = take(topic, 4)
    assert {message.id: message.body for message in received} == bodies
    assert {message.key for message in received} == {"key"}
    assert len(objects(bucket)) == 3
    assert topic.ack("g", received) == 4
    assert objects(bucket) == []


def test_a_body_beyond_the_limit_is_refused_before_anything_is_sent(topic: Topic, bucket: Path) -> None:
    with pytest.raises(TopicError, match=f"at most {MAX_BODY_BYTES} can be sent") as caught:
        topic.publish([Message("a", b"small"), Message("b", b"x" * (MAX_BODY_BYTES + 1))])
    assert not caught.value.retryable
    assert objects(bucket) == []
    assert topic.group_state("g").pending == 0


def test_a_released_message_keeps_its_body(topic: Topic, bucket: Path) -> None:
    topic.publish([Message("a", b"x" * LARGE)])
    topic.release("g", take(topic, 1))
    (again,) = take(topic, 1)
    assert (len(again.body), again.attempts) == (LARGE, 2)


def test_a_dead_letter_keeps_its_body_and_comes_back_with_it(topic: Topic, bucket: Path) -> None:
    body = os.urandom(LARGE)
    topic.publish([Message("a", body)])
    topic.dead_letter("g", take(topic, 1), "why", traceback="t" * 30_000)
    (letter,) = topic.dead_letters("g")
    assert (letter.body, letter.reason, len(letter.traceback)) == (body, "why", 30_000)
    assert len(objects(bucket)) == 1
    assert topic.redrive("g", lambda letter: letter.body) == 1
    received = take(topic, 1)
    assert received[0].body == body
    topic.ack("g", received)
    assert objects(bucket) == []


def test_a_mended_letter_leaves_no_object_behind(topic: Topic, bucket: Path) -> None:
    topic.publish([Message("a", b"x" * LARGE), Message("b", b"y" * LARGE)])
    topic.dead_letter("g", take(topic, 2), "why")
    assert topic.redrive("g", lambda letter: b"small" if letter.id == "a" else b"z" * LARGE) == 2
    assert len(objects(bucket)) == 1
    received = take(topic, 2)
    assert {message.id: message.body for message in received} == {"a": b"small", "b": b"z" * LARGE}
    topic.ack("g", received)
    assert objects(bucket) == []


def test_a_body_that_is_gone_makes_a_dead_letter_and_no_endless_loop(topic: Topic, url: str, bucket: Path) -> None:
    lost, kept = (Event.new("tests", {"cls_type": "x", "text": "x" * LARGE}) for _ in range(2))
    topic.publish([Message(lost.header.id, encode(lost))])
    objects(bucket)[0].unlink()
    topic.publish([Message(kept.header.id, encode(kept))])
    handled: list[str] = []
    counts = run(topic, url, handled)
    assert handled == [kept.header.id]
    assert (counts.succeeded, counts.dead) == (1, 1)
    (letter,) = topic.dead_letters("g")
    assert letter.id == lost.header.id
    assert f"its body is no longer at s3://{bucket.name}/claims/x/" in letter.reason
    assert json.loads(letter.body)[1]["s3BucketName"] == bucket.name


def test_an_event_that_is_too_large_is_set_aside_with_its_bytes(topic: Topic, url: str, bucket: Path) -> None:
    body = encode(Event.new("tests", {"cls_type": "x", "text": "x" * 20_000_000}))
    topic.publish([Message("m1", body)])
    handled: list[str] = []
    counts = run(topic, url, handled)
    assert (handled, counts.dead) == ([], 1)
    (letter,) = topic.dead_letters("g")
    assert letter.body == body
    assert "the limit is" in letter.reason


def test_no_other_bucket_is_read_whatever_a_message_says(topic: Topic, sqs: SqsServer, s3: S3Server) -> None:
    other = s3.bucket(f"other{os.getpid()}")
    (other / "secret").write_text("secret")
    topic.publish([Message("first", b"")])
    topic.ack("g", take(topic, 1))
    client = sqs.client()
    pointer = json.dumps(
        ["software.amazon.payloadoffloading.PayloadS3Pointer", {"s3BucketName": other.name, "s3Key": "secret"}]
    )
    client.send_message(
        QueueUrl=client.get_queue_url(QueueName=topic.name)["QueueUrl"],
        MessageBody=pointer,
        MessageAttributes={EXTENDED: {"DataType": "Number", "StringValue": "6"}},
    )
    (received,) = take(topic, 1)
    assert received.body == pointer.encode()
    topic.dead_letter("g", [received], "not an event")
    (letter,) = topic.dead_letters("g")
    assert f"its body is in the bucket '{other.name}', and only" in letter.reason
    assert (other / "secret").exists()


def test_s3_that_is_away_keeps_messages_waiting(topic: Topic, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_TRIES", 1)
    topic.publish([Message("large", b"x" * LARGE)])
    s3.stop()
    try:
        with pytest.raises(TopicError, match="can't be reached") as caught:
            topic.receive("g", lease=1, wait=20)
        assert caught.value.retryable
        with pytest.raises(TopicError, match="can't be reached"):
            topic.publish([Message("other", b"x" * LARGE)])
        topic.publish([Message("small", b"")])
        received = topic.receive("g", lease=2, wait=20)
        assert ids(received) == ["small"]
        topic.ack("g", received)
    finally:
        s3.up()
    assert ids(take(topic, 1)) == ["large"]


def test_without_a_bucket_a_large_body_is_refused_in_one_line(topic: Topic, sqs: SqsServer) -> None:
    with open_topics(sqs.url) as home:
        plain = home.topic(topic.name)
        with pytest.raises(TopicError, match="open the topics with claim_check=s3://BUCKET/PREFIX") as caught:
            plain.publish([Message("small", b""), Message("a", b"x" * LARGE)])
        assert not caught.value.retryable
        assert "\n" not in str(caught.value)
        assert plain.group_state("g").pending == 0


def test_a_bucket_that_is_not_there_is_said_and_nothing_is_dead(
    topic: Topic, sqs: SqsServer, s3: S3Server, url: str
) -> None:
    topic.publish([Message("a", b"x" * LARGE)])
    s3_endpoint = quote(s3.url, safe="")
    with open_topics(f"{sqs.url}&claim_check=s3://no-such-bucket&s3_endpoint={s3_endpoint}") as home:
        with pytest.raises(TopicError, match="NoSuchBucket") as caught:
            home.topic(topic.name).publish([Message("b", b"x" * LARGE)])
        assert not caught.value.retryable


def test_wrong_credentials_are_said_without_any_of_them(
    topic: Topic, home: Topics, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.publish([Message("a", b"")])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-hunter2")
    with open_topics(url) as other, pytest.raises(TopicError, match="credentials") as caught:
        other.topic(topic.name).publish([Message("b", b"x" * LARGE)])
    assert not caught.value.retryable
    assert "hunter2" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_the_objects_are_read_by_whoever_speaks_amazons_form(
    topic: Topic, sqs: SqsServer, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its client does with a message (its sources, ``receive_message``), step by step."""
    topic.publish([Message("a", b"x" * LARGE)])
    client = sqs.client()
    queue = client.get_queue_url(QueueName=topic.name)["QueueUrl"]
    (message,) = client.receive_message(QueueUrl=queue, MessageAttributeNames=["All"], WaitTimeSeconds=5)["Messages"]
    assert message["MessageAttributes"][EXTENDED] == {"DataType": "Number", "StringValue": str(LARGE)}
    kind, place = json.loads(message["Body"])
    assert kind == "software.amazon.payloadoffloading.PayloadS3Pointer"
    monkeypatch.setenv("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required")
    store = bare_client(s3.url, "s3", aws_access_key_id=KEY, aws_secret_access_key=SECRET)
    assert store.get_object(Bucket=place["s3BucketName"], Key=place["s3Key"])["Body"].read() == b"x" * LARGE
