"""What real clients took from a queue, printed as the AWS command line does it, is read as the events in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from balog.event import Event, decode, encode
from balog.topics import open_topics
from balog.topics.base import Message
from tests.services.servers.elasticmq import set_credentials
from tests.services.servers.moto import running_moto

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = pytest.mark.service


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    set_credentials(monkeypatch)
    with running_moto(tmp_path) as server:
        yield server


def dump(client: Any, url: str) -> str:
    """What ``aws sqs receive-message --message-attribute-names All`` prints, again and again until all is taken."""
    printed = []
    while messages := client.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
    ).get("Messages"):
        printed.append(json.dumps({"Messages": messages}, indent=4, ensure_ascii=False))
    return "\n".join(printed) + "\n"


def read(path: Path) -> dict[str, dict[str, Any]]:
    from pyspark.sql import types as t

    from balog.analytics.reading.scan import EventQuery, scan
    from balog.analytics.reading.spark_types import QUARANTINE, project_spark
    from balog.analytics.reading.tasks import Slice

    schema = t.StructType().add("id", "string").add("payload_json", "string").add("quarantine", QUARANTINE)
    rows = [row for batch in scan([Slice(str(path))], EventQuery(project_spark(schema))) for row in batch.to_pylist()]
    assert [row["quarantine"] for row in rows] == [None] * len(rows)
    return {row["id"]: json.loads(row["payload_json"]) for row in rows}


def test_what_balog_published(server: Any, tmp_path: Path) -> None:
    events = [
        Event.new("a.b", {"number": number, "text": "\x01\r é" if number % 3 else "plain"}) for number in range(25)
    ]
    with open_topics(server.url) as topics:
        topics.topic("events").publish(Message(event.header.id, encode(event)) for event in events)
    client = server.client()
    url = client.get_queue_url(QueueName="events")["QueueUrl"]
    (tmp_path / "dump.json").write_text(dump(client, url))
    assert read(tmp_path / "dump.json") == {event.header.id: event.payload for event in events}


def test_what_came_by_sns(server: Any, tmp_path: Path) -> None:
    queue, topic = server.client(), server.client("sns")
    url = queue.create_queue(QueueName="q")["QueueUrl"]
    queue_arn = queue.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic_arn = topic.create_topic(Name="t")["TopicArn"]
    topic.subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=queue_arn)
    events = [Event.new("a.b", {"number": number}) for number in range(12)]
    for event in events:
        topic.publish(TopicArn=topic_arn, Message=encode(event).decode())
    (tmp_path / "dump.json").write_text(dump(queue, url))
    assert read(tmp_path / "dump.json") == {event.header.id: decode(encode(event)).payload for event in events}
