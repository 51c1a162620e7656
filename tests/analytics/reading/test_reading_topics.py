"""Local topics as a place to read."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from balog.analytics.reading.inputs import read_inputs
from balog.analytics.reading.topics import bounds, split_bounds
from balog.common.errors import ConfigError, TopicError
from balog.topics import Message
from balog.topics.local import LocalTopics
from tests.analytics.reading.conftest import read_tasks
from tests.topics.retention import prune


def publish(folder: Path, *documents: Any) -> None:
    """Publish documents, or bytes as they are, to the topic ``t``."""
    topics = LocalTopics(folder)
    bodies = [one if isinstance(one, bytes) else json.dumps(one, indent=1).encode() for one in documents]
    held = topics.topic("t").describe().messages if topics.topic("t").exists() else 0
    topics.topic("t").publish(Message(f"m{held + number}", body) for number, body in enumerate(bodies))
    topics.close()


def read(url: str, parallel: int = 1) -> tuple[list[str], list[dict[str, Any]]]:
    ids, bad = read_tasks(read_inputs({"path": url, "parallel": str(parallel)}).tasks())
    return list(ids.elements()), bad


def test_messages_are_events_and_what_is_none_is_told_by_its_number(tmp_path: Path, make: Any) -> None:
    documents = [make() for _ in range(5)]
    publish(tmp_path, *documents[:3], b"no event", *documents[3:], b"")
    url = f"local:{tmp_path}#t"
    ids, (bad,) = read(url)
    assert sorted(ids) == [document["header"]["id"] for document in documents]
    assert (bad["file"], bad["offset"], bad["raw"]) == (url, 4, "no event")


def test_reading_takes_nothing_from_groups_and_writes_nothing(tmp_path: Path, make: Any) -> None:
    publish(tmp_path, make(), make())
    topic = LocalTopics(tmp_path).topic("t")
    (first,) = topic.receive("g", limit=1)
    before = topic.describe()
    assert len(read(f"local:{tmp_path}#t")[0]) == 2
    assert topic.describe() == before
    assert topic.ack("g", [first]) == 1


class Unopened:
    """What SQLite gives in a folder in which we can't make the file that readers of a log share."""

    def execute(self, question: str) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    def close(self) -> None:
        pass


def test_a_topic_in_a_folder_that_we_may_not_write_to_is_read_when_nobody_has_it_open(
    tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, make())
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda at, **o: real(at, **o) if "immutable" in at else Unopened())
    url = f"local:{tmp_path}#t"
    assert bounds(url) == {"": (1, 2)}
    (tmp_path / "t.sqlite-wal").write_bytes(b"somebody writes")
    with pytest.raises(TopicError, match="unable to open"):
        bounds(url)


def test_a_long_topic_is_shared_out_and_each_message_read_once(tmp_path: Path, make: Any) -> None:
    publish(tmp_path, *(make() for _ in range(50)))
    assert bounds(f"local:{tmp_path}#t") == {"": (1, 51)}
    cut = split_bounds(f"local:{tmp_path}#t", {"": (1, 100_001)}, 2)
    assert [(piece.start, piece.end) for piece in cut] == [
        (1, 25_001),
        (25_001, 50_001),
        (50_001, 75_001),
        (75_001, 100_001),
    ]
    assert len(set(read(f"local:{tmp_path}#t", 4)[0])) == 50


def test_what_retention_removed_is_not_there_and_the_end_stays(tmp_path: Path, make: Any) -> None:
    now = 1000.0
    topic = LocalTopics(tmp_path, retention=10, clock=lambda: now).topic("t")
    topic.publish([Message("a", json.dumps(make()).encode())])
    now = 2000.0
    prune(topic)
    assert bounds(f"local:{tmp_path}#t") == {"": (2, 2)}
    assert read(f"local:{tmp_path}#t") == ([], [])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("local:{}", "names no topic"),
        ("local:{}#missing", "no such topic"),
        ("local:{}#..", "can't be used"),
        ("sqs:eu-central-1#q", "read a dump"),
    ],
)
def test_what_is_no_topic_is_refused(tmp_path: Path, url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(url.format(tmp_path))
