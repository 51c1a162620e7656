"""Archives into a topic: what is chosen, and what is refused."""

import gzip
import os
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from balog.errors import MessageError, MissingExtraError
from balog.event import Event, encode
from balog.storage import open_storage
from balog.topics import Topic
from balog.topics import ingest as ingest_module
from balog.topics.ingest import Choice, Ingest
from balog.topics.memory import MemoryTopics

EVERYTHING = Choice()
DAY = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def events(count: int, channel: str = "tap.users", when: datetime = DAY) -> list[bytes]:
    return [encode(Event.new(channel, {"n": number}, timestamp=when)) for number in range(count)]


def write(path: Path, lines: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"\n".join(lines) + b"\n"
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def topic() -> Topic:
    return MemoryTopics().topic("t")


def ingest(path: Path, topic: Topic | None, choice: Choice = EVERYTHING, **more) -> Ingest:
    run = Ingest(topic, choice, **more)
    storage = open_storage(str(path))
    run.run(storage, run.find(storage))
    return run


def bodies(topic: Topic) -> list[bytes]:
    return [message.body for message in topic.peek(100_000)]


def test_a_folder_is_played_in_the_order_of_its_files(tmp_path: Path, topic: Topic) -> None:
    first, second = events(2), events(2)
    write(tmp_path / "b.jsonl.gz", second)
    write(tmp_path / "a" / "x.jsonl", first)
    for hidden in ("_manifest/x.json", ".y.jsonl", "a/notes.md"):
        write(tmp_path / hidden, [b"{}"])
    counts = ingest(tmp_path, topic).counts
    assert (counts.files, counts.sent, counts.new, counts.bad) == (2, 4, 4, 0)
    assert bodies(topic) == first + second


def test_playing_again_stores_nothing_twice(tmp_path: Path, topic: Topic) -> None:
    write(tmp_path / "a.jsonl", [*events(3), b'1577880000\tc\t{"old": 1}', b'1577880000\tc\t{"old": 1}'])
    assert ingest(tmp_path, topic).counts.new == 5
    assert ingest(tmp_path, topic).counts.new == 0


def test_folders_of_other_days_are_not_looked_into(tmp_path: Path, topic: Topic) -> None:
    for day in (19, 20, 21):
        write(tmp_path / "orders" / f"date=2026-11-{day}" / "x.jsonl", events(1, when=DAY.replace(day=day)))
    choice = Choice(after=DAY.replace(hour=0), before=DAY.replace(day=21, hour=12))
    run = ingest(tmp_path, topic, choice)
    assert (run.counts.files, run.counts.sent, run.counts.unwanted) == (2, 1, 1)


def test_only_what_is_chosen_is_published(tmp_path: Path, topic: Topic) -> None:
    early, late = DAY.replace(hour=1), DAY.replace(hour=20)
    wanted = events(1, "tap.orders", DAY)
    lines = [*events(1, "tap.orders", early), *wanted, *events(1, "tap.users"), *events(1, "tap.orders", late)]
    write(tmp_path / "a.jsonl", lines)
    ingest(tmp_path, topic, Choice(DAY, late, "*.orders"))
    assert bodies(topic) == wanted


def test_a_dry_run_counts_and_publishes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", events(3))
    assert ingest(tmp_path, None).counts.sent == 3


def test_a_bad_line_is_told_and_the_others_go(tmp_path: Path, topic: Topic) -> None:
    good = events(2)
    path = write(tmp_path / "a.jsonl", [good[0], b"no event \xff", good[1]])
    said: list[str] = []
    counts = ingest(path, topic, report=said.append).counts
    assert (counts.sent, counts.bad) == (2, 1)
    assert said[0].startswith(f"{path}: line 2: ")
    assert bodies(topic) == good


def test_a_damaged_file_gives_what_it_has_and_the_others_go(tmp_path: Path, topic: Topic) -> None:
    path = write(
        tmp_path / "a.jsonl.gz", [encode(Event.new("a.b", {"noise": os.urandom(50).hex()})) for _ in range(5000)]
    )
    path.write_bytes(path.read_bytes()[:-2000])
    write(tmp_path / "b.jsonl", events(1))
    said: list[str] = []
    counts = ingest(tmp_path, topic, report=said.append).counts
    assert (counts.files, counts.damaged) == (2, 1)
    assert "cut off" in said[0]
    assert 1 < len(bodies(topic)) <= 5001


def test_a_stop_ends_between_batches(tmp_path: Path, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "_BATCH", 2)
    path = write(tmp_path / "a.jsonl", events(9))
    ingest(path, topic, should_stop=lambda: topic.exists())
    assert len(bodies(topic)) == 2


def test_an_event_that_the_topic_can_never_take_is_a_bad_line(tmp_path: Path) -> None:
    class Small(type(MemoryTopics().topic("t"))):
        def publish(self, messages: list) -> int:
            if any(len(message.body) > 1000 for message in messages):
                raise MessageError("too large")
            return super().publish(messages)

    topic = Small("t", lambda: 0.0, None)
    large = encode(Event.new("c", {"text": "x" * 1000}))
    good = events(4)
    said: list[str] = []
    write(tmp_path / "a.jsonl", [*good[:2], large, *good[2:]])
    counts = ingest(tmp_path / "a.jsonl", topic, report=said.append).counts
    assert (counts.sent, counts.new, counts.bad) == (4, 4, 1)
    assert bodies(topic) == good
    assert said == [f"{tmp_path}/a.jsonl: line 3: too large"]


def test_messages_have_keys(tmp_path: Path, topic: Topic) -> None:
    ingest(write(tmp_path / "a.jsonl", events(2)), topic, key_of=lambda event: str(event.payload["n"]))
    assert [message.key for message in topic.peek()] == ["0", "1"]


def test_a_package_that_is_not_installed_ends_it(tmp_path: Path, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError):
        ingest(tmp_path, topic)
