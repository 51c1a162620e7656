"""Events in topics of a real Kafka, asked where they lie."""

import json
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from balog.analytics.reading.inputs import Inputs, read_inputs
from balog.analytics.reading.remote import StoragePool
from balog.analytics.reading.streaming.planner import Offset, StreamPlanner
from balog.common.errors import ConfigError
from balog.topics import Message, open_topics
from tests.analytics.reading.conftest import read_tasks
from tests.services.servers.kafka import KafkaServer

pytestmark = pytest.mark.service


@pytest.fixture
def url(kafka: KafkaServer) -> str:
    """A topic of three partitions that is yet to be made."""
    return f"{kafka.url(partitions=3)}#t-{uuid4().hex[:8]}"


def ids(count: int) -> list[str]:
    return [f"LG{number}" for number in range(count)]


def publish(url: str, numbers: range, *bodies: bytes) -> None:
    home, _, name = url.partition("#")
    made = [
        {
            "schema": "0.1.0",
            "header": {"id": f"LG{number}", "channel": "c", "timestamp": "2026-11-20T07:46:12Z", "level": "INFO"},
            "payload": {"cls_type": "x"},
        }
        for number in numbers
    ]
    messages = [json.dumps(one, indent=1).encode() for one in made]
    with open_topics(home) as topics:
        topics.topic(name).publish(Message(uuid4().hex, body, uuid4().hex) for body in (*messages, *bodies))


def test_a_topic_is_read_by_partition_to_where_it_reached(url: str) -> None:
    publish(url, range(300), b"no event")
    tasks = read_inputs({"path": url}).tasks()
    publish(url, range(300, 310))
    assert sorted(slices[0].path[-2:] for slices in tasks) == ["/0", "/1", "/2"]
    counted, (bad,) = read_tasks(tasks)
    assert counted == Counter(ids(300))
    assert bad["raw"] == "no event"
    assert bad["file"].startswith(f"{url}/")
    with open_topics(url.partition("#")[0]) as topics:
        assert topics.topic(url.partition("#")[2]).describe().groups == []


def test_a_stream_goes_on_at_its_offsets(url: str, tmp_path: Any) -> None:
    publish(url, range(100))
    stream = StreamPlanner(Inputs((url,), StoragePool()), str(tmp_path))
    first = stream.latest(Offset())
    assert sum(first.topics[url].values()) == 100
    counted = read_tasks(stream.batch(Offset(), first))[0]
    publish(url, range(100, 150))
    end = stream.latest(first)
    counted += read_tasks(stream.batch(first, end))[0]
    assert counted == Counter(ids(150))
    assert stream.latest(end) == end


def test_a_missing_topic_is_refused_before_anything_runs(kafka: KafkaServer) -> None:
    with pytest.raises(ConfigError, match="no such topic"):
        read_inputs({"path": f"{kafka.url()}#nothing"}).tasks()
