"""Archives into a topic: what is chosen, what is set aside, and going on after a stop."""

import gzip
import io
import json
import os
import sys
from contextlib import closing, nullcontext
from datetime import datetime, timezone
from pathlib import Path

import pytest

from balog.errors import ConfigError, MessageError, MissingExtraError, TopicError
from balog.event import Event, encode
from balog.storage import open_storage
from balog.topics import Topic
from balog.topics import ingest as ingest_module
from balog.topics.ingest import Choice, Ingest, IngestState
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


def ingest(path: Path, topic: Topic | None, choice: Choice = EVERYTHING, state: Path | None = None, **more) -> Ingest:
    with closing(IngestState(str(state), "t")) if state else nullcontext() as progress:
        run = Ingest(topic, choice, progress=progress, **more)
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
    write(tmp_path / "b.jsonl", events(5, "tap.orders"))
    ingest(tmp_path, topic, Choice(DAY, late, "*.orders", "a*"))
    assert bodies(topic) == wanted


def test_a_dry_run_counts_and_publishes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", events(3))
    assert ingest(tmp_path, None).counts.sent == 3


def test_a_bad_line_is_told_and_set_aside_and_the_others_go(tmp_path: Path, topic: Topic) -> None:
    good = events(2)
    path = write(tmp_path / "a.jsonl", [good[0], b"no event \xff", good[1]])
    aside, said = io.BytesIO(), []
    counts = ingest(path, topic, quarantine=aside, report=said.append).counts
    assert (counts.sent, counts.bad) == (2, 1)
    assert said[0].startswith(f"{path}: line 2: ")
    record = json.loads(aside.getvalue())
    assert (record["file"], record["line"], record["raw"]) == (str(path), 2, "no event \\xff")
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


class Failing:
    """Takes so many batches, and then no more."""

    def __init__(self, topic: Topic, batches: int) -> None:
        self.topic, self.left = topic, batches

    def publish(self, messages) -> int:
        if not self.left:
            raise TopicError("it is gone")
        self.left -= 1
        return self.topic.publish(messages)


@pytest.mark.parametrize("batches", range(5))
def test_it_goes_on_where_it_failed(
    tmp_path: Path, topic: Topic, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "_BATCH", 2)
    sent = [events(5), events(4)]
    write(tmp_path / "in" / "a.jsonl.gz", sent[0])
    write(tmp_path / "in" / "b.jsonl", sent[1])
    state = tmp_path / "state"
    with pytest.raises(TopicError):
        ingest(tmp_path / "in", Failing(topic, batches), state=state)  # type: ignore[arg-type]
    before = len(bodies(topic)) if batches else 0
    second = ingest(tmp_path / "in", topic, state=state).counts
    assert second.sent == second.new == 9 - before
    assert bodies(topic) == sent[0] + sent[1]
    assert ingest(tmp_path / "in", topic, state=state).counts.files == 0


def test_a_file_that_grew_is_read_on(tmp_path: Path, topic: Topic) -> None:
    path = write(tmp_path / "a.jsonl", events(2))
    state = tmp_path / "state"
    ingest(path, topic, state=state)
    with path.open("ab") as file:
        file.write(events(1)[0] + b"\n")
    assert ingest(path, topic, state=state).counts.sent == 1


def test_a_state_that_a_kill_cut_off_is_used_up_to_there(tmp_path: Path, topic: Topic) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path / "in" / name, events(2))
    state = tmp_path / "state"
    ingest(tmp_path / "in", topic, state=state)
    state.write_bytes(state.read_bytes()[:-10])
    assert ingest(tmp_path / "in", topic, state=state).counts.sent == 2  # of b.jsonl
    assert ingest(tmp_path / "in", topic, state=state).counts.sent == 0


def test_a_state_belongs_to_one_topic(tmp_path: Path) -> None:
    IngestState(str(tmp_path / "state"), "one").close()
    with pytest.raises(ConfigError, match="into one"):
        IngestState(str(tmp_path / "state"), "two")


def test_a_file_that_is_no_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a shopping list\n")
    with pytest.raises(ConfigError, match="not the state"):
        IngestState(str(tmp_path / "state"), "t")
    assert (tmp_path / "state").read_text() == "a shopping list\n"


def test_a_stop_ends_between_batches(tmp_path: Path, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "_BATCH", 2)
    path = write(tmp_path / "a.jsonl", events(9))
    ingest(path, topic, should_stop=lambda: topic.exists())
    assert len(bodies(topic)) == 2


def test_a_line_that_is_only_half_written_is_taken_once_it_is_whole(tmp_path: Path, topic: Topic) -> None:
    file, state, lines = tmp_path / "a.jsonl", tmp_path / "state", events(3)
    file.write_bytes(lines[0] + b"\n" + lines[1][:-9])
    assert ingest(file, topic, state=state).counts.bad == 1
    write(file, lines)
    assert ingest(file, topic, state=state).counts.sent == 2
    assert bodies(topic) == lines


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_file_that_another_one_replaced_is_read_from_its_beginning(tmp_path: Path, topic: Topic, count: int) -> None:
    state, first, second = tmp_path / "state", events(3), events(count)
    ingest(write(tmp_path / "a.jsonl", first), topic, state=state)
    ingest(write(tmp_path / "a.jsonl", second), topic, state=state)
    assert bodies(topic) == first + second


def test_an_event_that_the_topic_can_never_take_is_a_bad_line(tmp_path: Path) -> None:
    class Small(type(MemoryTopics().topic("t"))):
        def publish(self, messages: list) -> int:
            if any(len(message.body) > 1000 for message in messages):
                raise MessageError("too large")
            return super().publish(messages)

    topic = Small("t", lambda: 0.0, None)
    large = encode(Event.new("c", {"text": "x" * 1000}))
    good, aside = events(4), io.BytesIO()
    write(tmp_path / "a.jsonl", [*good[:2], large, *good[2:]])
    counts = ingest(tmp_path / "a.jsonl", topic, state=tmp_path / "state", quarantine=aside).counts
    assert (counts.sent, counts.new, counts.bad) == (4, 4, 1)
    assert bodies(topic) == good
    (record,) = aside.getvalue().splitlines()
    assert json.loads(record) == {
        "file": str(tmp_path / "a.jsonl"), "line": 3, "reason": "too large", "raw": large.decode()
    }  # fmt: skip


def test_messages_have_keys(tmp_path: Path, topic: Topic) -> None:
    ingest(write(tmp_path / "a.jsonl", events(2)), topic, key_of=lambda event: str(event.payload["n"]))
    assert [message.key for message in topic.peek()] == ["0", "1"]


def test_a_package_that_is_not_installed_ends_it_before_the_file_counts_as_read(
    tmp_path: Path, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError):
        ingest(tmp_path, topic, state=tmp_path / "state")
