"""``balog topics …`` on servers: a queue of ElasticMQ, a log of Kafka, and archives in S3Proxy."""

import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from balog.common.storage import open_storage
from balog.event import Event, decode, encode
from balog.topics import Message, Topic, Topics, open_topics
from balog.topics.sqs.topic import SqsTopic
from tests.programs import call_balog
from tests.services.servers.elasticmq import SqsServer, set_credentials
from tests.services.servers.kafka import KafkaServer
from tests.services.servers.s3 import S3Server, running_s3

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def sqs(elasticmq: SqsServer, monkeypatch: pytest.MonkeyPatch) -> SqsServer:
    """A server that tells at once that there is nothing more; AWS may take longer."""
    set_credentials(monkeypatch)
    monkeypatch.setattr(SqsTopic, "poll_timeout", 0.5)
    return elasticmq


@pytest.fixture
def home(sqs: SqsServer) -> Iterator[Topics]:
    with open_topics(sqs.url) as home:
        yield home


@pytest.fixture
def queue(home: Topics) -> Topic:
    return home.topic(f"q{uuid4().hex[:12]}")


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, Path]:
    """A bucket's URL, and a file of the options that reach it."""
    s3.environment(monkeypatch)
    name = f"bucket-{uuid4().hex}"
    s3.bucket(name)
    (tmp_path / "options.json").write_text(json.dumps(s3.options()))
    return f"s3://{name}", tmp_path / "options.json"


def run(*arguments: object, feed: bytes = b"") -> "subprocess.CompletedProcess[str]":
    return call_balog("topics", *arguments, feed=feed)


def events(count: int) -> list[bytes]:
    return [encode(Event.new("tap.users", {"cls_type": "app.job", "n": number})) for number in range(count)]


def fill(topic: Topic, bodies: list[bytes]) -> None:
    topic.publish([Message(decode(body).header.id, body) for body in bodies])


def archived(folder: Path) -> list[bytes]:
    files = sorted(folder.glob("*/date=*/*.jsonl.gz"))
    return sorted(line for file in files for line in gzip.decompress(file.read_bytes()).splitlines())


def test_a_queue_is_dumped_and_gets_all_back(sqs: SqsServer, queue: Topic, tmp_path: Path) -> None:
    sent = events(25)
    fill(queue, sent)
    done = run("dump", "--topics", sqs.url, queue.name, "--to", tmp_path / "archive")
    assert done.returncode == 0, done.stderr
    assert "25 messages were released" in done.stderr
    assert archived(tmp_path / "archive") == sorted(sent)
    found = []
    while received := queue.receive("g", wait=2):
        found += [message.body for message in received]
        queue.ack("g", received)
    assert sorted(found) == sorted(sent)


def test_a_queue_is_consumed_into_s3(
    sqs: SqsServer,
    queue: Topic,
    bucket: tuple[str, Path],
    s3: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    url, options = bucket
    sent = events(25)
    fill(queue, sent)
    done = run("dump", "--topics", sqs.url, queue.name, "--to", url, "--options", options, "--consume")
    assert done.returncode == 0, done.stderr
    assert queue.receive("g", wait=1) == []
    archive = open_storage(url, s3.options())
    ((name, _),) = archive.files(lambda folder: True)
    with archive.open(name) as file:
        assert sorted(gzip.decompress(file.read()).splitlines()) == sorted(sent)


def test_dead_letters_of_a_queue_go_back_mended(sqs: SqsServer, queue: Topic) -> None:
    fill(queue, events(3))
    taken: list[object] = []
    while len(taken) < 3:
        received = queue.receive("g", wait=2)
        queue.dead_letter("g", received, "why")
        taken += received
    more = ("--group", "g", "--where", "payload.n > 0", "--set", "payload.ok=true")
    done = run("redrive", "--topics", sqs.url, queue.name, *more, "--dry-run")
    assert len(done.stdout.splitlines()) == 2, done.stderr
    done = run("redrive", "--topics", sqs.url, queue.name, *more)
    assert "2 dead letters of g published" in done.stderr
    back: list[int] = []
    while len(back) < 2:
        for message in queue.receive("g", wait=5):
            back.append(decode(message.body).payload["n"])
            assert decode(message.body).payload["ok"] is True
    assert sorted(back) == [1, 2]
    assert [decode(letter.body).payload["n"] for letter in queue.dead_letters("g")] == [0]


def test_a_queue_is_described_and_has_no_offsets(sqs: SqsServer, queue: Topic) -> None:
    fill(queue, events(4))
    found = json.loads(run("describe", "--topics", sqs.url, queue.name, "--json").stdout)
    assert found["state"]["messages"] == 4
    assert set(found["types"]) == {"app.job"}
    done = run("offsets", "--topics", sqs.url, queue.name, "--group", "g")
    assert (done.returncode, done.stdout) == (1, "")
    assert "a queue has no positions" in done.stderr


def test_a_topic_of_kafka_is_published_looked_at_dumped_moved_and_mended(kafka: KafkaServer, tmp_path: Path) -> None:
    url, name, sent = kafka.url(partitions=3), f"t{uuid4().hex[:12]}", events(25)
    done = run("publish", "--topics", url, name, feed=b"\n".join(sent))
    assert "25 events were published" in done.stderr, done.stderr
    shown = run("peek", "--topics", url, name, "--raw", "--limit", 100).stdout
    assert sorted(shown.encode().splitlines()) == sorted(sent)
    found = json.loads(run("describe", "--topics", url, name, "--json").stdout)
    assert (found["state"]["messages"], found["types"]) == (25, {"app.job": 25})

    dump = ("dump", "--topics", url, name, "--to", tmp_path / "archive")
    for written in (25, 0):
        done = run(*dump)
        assert done.returncode == 0, done.stderr
        assert f"{written} events are in" in done.stderr
    assert archived(tmp_path / "archive") == sorted(sent)

    group = ("--topics", url, name, "--group", "balog-dump")
    assert "lag 0" in run("offsets", *group).stdout
    done = run("offsets", *group, "--to", "earliest")
    assert "lag 25" in done.stdout, done.stderr

    with open_topics(url) as home:
        topic, taken = home.topic(name), 0
        while taken < 25:
            received = topic.receive("g", wait=5)
            topic.dead_letter("g", received, "why")
            taken += len(received)
    done = run("redrive", "--topics", url, name, "--group", "g", "--where", "payload.n < 2", "--set", "payload.ok=true")
    assert "2 dead letters of g published, 23 not selected" in done.stderr
    with open_topics(url) as home:
        back: list[bytes] = []
        while len(back) < 2:
            back += [message.body for message in home.topic(name).receive("g", wait=5)]
    assert sorted(decode(body).payload["n"] for body in back) == [0, 1]
