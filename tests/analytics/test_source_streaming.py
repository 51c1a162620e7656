"""The data source as a stream inside Spark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from balog.topics import Message
from balog.topics.local import LocalTopics

pytestmark = pytest.mark.spark

COLUMNS = "id string, quarantine struct<file string, offset bigint, reason string, raw string>"


@pytest.fixture
def follow(spark: Any, tmp_path: Path) -> Callable[..., list[str]]:
    """Runs a stream until it has read what is there, and gives the ids that all runs together have given."""

    def follow(path: str, **options: Any) -> list[str]:
        stream = spark.readStream.format("balog").schema(COLUMNS)
        frame = stream.option("state", str(tmp_path / "state")).options(**options).load(path)
        frame = frame.selectExpr("coalesce(id, concat(quarantine.offset, ' ', quarantine.raw)) AS id").coalesce(1)
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination(120)
        assert query.exception() is None
        return sorted(row.id for row in spark.read.parquet(str(tmp_path / "out")).collect())

    return follow


def test_a_folder_is_followed_over_restarts(follow: Any, make: Any, write: Any, tmp_path: Path) -> None:
    """Given new files, lines added to a file, and one that is half written, then each event comes once."""
    write("in/a.jsonl", make(), make())
    write("in/b.jsonl.gz", make(), b"broken")
    assert [name[-2:] for name in follow(str(tmp_path / "in"), maxBytesPerTrigger=1)] == ["en", "00", "01", "02"]
    with open(tmp_path / "in/a.jsonl", "a") as file:
        file.write(json.dumps(make()) + "\n" + json.dumps(make())[:-20])
    write("in/c.jsonl", make())
    ids = follow(str(tmp_path / "in"), maxBytesPerTrigger=1)
    assert [name[-2:] for name in ids] == ["en", "00", "01", "02", "03", "05"]
    offsets = [path.read_text() for path in (tmp_path / "checkpoint/offsets").iterdir() if path.name.isdecimal()]
    assert len(offsets) == 4
    assert max(map(len, offsets)) < 2000


def test_a_local_topic_is_followed_by_its_own_numbers(follow: Any, make: Any, tmp_path: Path) -> None:
    topic = LocalTopics(tmp_path / "topics").topic("t")
    url = f"local:{tmp_path}/topics#t"
    topic.publish([Message(str(number), json.dumps(make()).encode()) for number in range(5)])
    assert len(follow(url)) == 5
    topic.publish([Message("5", json.dumps(make()).encode()), Message("6", b"broken")])
    ids = follow(url)
    assert ids[0] == "7 broken"
    assert [int(name[2:]) for name in ids[1:]] == list(range(6))
