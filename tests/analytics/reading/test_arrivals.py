"""What comes to growing files is read once, whatever comes in between."""

import gzip
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.analytics.reading.blocks import Block, new_buffer, read_blocks
from balog.analytics.reading.inputs import Inputs
from balog.analytics.reading.remote import StoragePool
from balog.analytics.reading.streaming import arrivals
from balog.analytics.reading.streaming.planner import Offset, StreamPlanner
from balog.common.errors import ConfigError
from balog.topics import Message
from balog.topics.local import LocalTopics

BUFFER = new_buffer()


class Reader:
    """A stream over ``root/in`` that is read as Spark would, from the checkpoint's offset on."""

    def __init__(self, root: Path, *more: str, most_bytes: int | None = None) -> None:
        self.folder = root / "in"
        self.folder.mkdir(exist_ok=True)
        self._inputs = Inputs((str(self.folder), *more), StoragePool(), 2)
        self._state = str(root / "state")
        self._most_bytes = most_bytes
        self.offset = Offset()
        self.lines: list[bytes] = []
        self.batches = 0
        self.restart()

    def restart(self) -> None:
        self.stream = StreamPlanner(self._inputs, self._state)
        self.offset = Offset.read(self.offset.write())

    def trigger(self, read: bool = True) -> bool:
        """Plan a batch, and read it unless it is to be lost; tell whether there was one."""
        end = self.stream.latest(self.offset, self._most_bytes)
        if end == self.offset:
            return False
        if read:
            self.lines += [line for slices in self.stream.batch(self.offset, end) for line in lines_of(slices)]
            self.offset = end
            self.batches += 1
            self.stream.commit(end)
        return True

    def drain(self) -> list[bytes]:
        while self.trigger():
            pass
        return sorted(self.lines)


def lines_of(slices: list[arrivals.Slice]) -> list[bytes]:
    found: list[bytes] = []
    for piece in slices:
        for part in read_blocks(piece, BUFFER):
            assert isinstance(part, Block)
            found += bytes(part.data).splitlines()
    return found


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def test_a_last_line_needs_no_end_when_it_is_a_whole_document_or_long_settled(reader: Reader) -> None:
    append(reader.folder / "a.jsonl", b'{"a": 1}')
    append(reader.folder / "b.jsonl", b"old")
    assert reader.drain() == [b'{"a": 1}']
    long_ago = os.stat(reader.folder).st_mtime - 2 * arrivals.SETTLED
    os.utime(reader.folder / "b.jsonl", (long_ago, long_ago))
    assert reader.drain() == [b"old", b'{"a": 1}']
    append(reader.folder / "a.jsonl", b'\n{"a": 2}\n')
    assert reader.drain() == [b"old", b'{"a": 1}', b'{"a": 2}']


@pytest.mark.parametrize(
    ("first", "second", "lines"),
    [
        (("a", b'{"a": 1}\n{"a"', None), ("a", b": 2}\n", None), [b'{"a": 1}', b'{"a": 2}']),  # it waits for its end
        (("a", b"1\n", None), ("late", b"2\n", 1), [b"1", b"2"]),  # older than what was read
    ],
)
def test_what_comes_later_is_read_once(reader: Reader, first: Any, second: Any, lines: list[bytes]) -> None:
    for count, (name, data, modified) in ((1, first), (2, second)):
        append(reader.folder / f"{name}.jsonl", data)
        if modified is not None:
            os.utime(reader.folder / f"{name}.jsonl", (modified, modified))
        assert reader.drain() == lines[:count]


@pytest.mark.parametrize("content", [b"x\n", b"new and longer\n"])
def test_another_file_under_the_same_name_is_read_from_its_beginning(reader: Reader, content: bytes) -> None:
    append(reader.folder / "a.jsonl", b"old\n1\n")
    reader.drain()
    (reader.folder / "a.jsonl").write_bytes(content)
    assert reader.drain() == sorted([b"old", b"1", content.strip()])


def test_a_limit_makes_batches_of_so_many_bytes(tmp_path: Path) -> None:
    reader = Reader(tmp_path, most_bytes=6)
    for number in range(7):
        append(reader.folder / f"{number}.jsonl", b"%d\n" % number)
    assert reader.drain() == [b"%d" % number for number in range(7)]
    assert reader.batches == 3


def test_what_comes_after_a_run_that_ends_has_begun_waits_for_the_next(reader: Reader) -> None:
    append(reader.folder / "a.jsonl", b"1\n")
    reader.stream.freeze()
    append(reader.folder / "b.jsonl", b"2\n")
    assert reader.drain() == [b"1"]
    reader.restart()
    assert reader.drain() == [b"1", b"2"]


def test_offsets_stay_small_and_a_log_is_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_FOLD", 3)
    reader = Reader(tmp_path)
    for number in range(12):
        append(reader.folder / f"{number % 5}.jsonl", b"%d\n" % number)
        assert reader.trigger()
    assert len(str(reader.offset.write())) < 100
    (log,) = (tmp_path / "state").iterdir()
    assert len(list(log.iterdir())) <= 6
    assert len(list(log.glob("*.seen.jsonl"))) == 1
    reader.restart()
    assert not reader.trigger()
    append(reader.folder / "0.jsonl", b"12\n")
    assert reader.drain() == sorted(b"%d" % number for number in range(13))


def test_a_lost_log_is_refused_and_not_read_again(reader: Reader, tmp_path: Path) -> None:
    append(reader.folder / "a.jsonl", b"1\n")
    reader.drain()
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    reader.restart()
    with pytest.raises(ConfigError, match=r"log of what came"):
        reader.trigger()


def test_a_topic_is_read_on_by_its_own_numbers(tmp_path: Path) -> None:
    topic = LocalTopics(tmp_path / "topics").topic("t")
    url = f"local:{tmp_path}/topics#t"
    stream = StreamPlanner(Inputs((url,), StoragePool()), str(tmp_path / "state"))
    topic.publish([Message(str(number), b"x") for number in range(3)])
    first = stream.latest(Offset())
    assert first == Offset(topics={url: {"": 4}})
    topic.publish([Message(str(number), b"x") for number in range(3, 5)])
    second = stream.latest(first)
    assert second == Offset(topics={url: {"": 6}})
    assert stream.latest(second) == second
    ((piece,),) = stream.batch(first, second)
    assert (piece.path, piece.start, piece.end) == (url, 4, 6)
    with pytest.raises(ConfigError, match="made anew"):
        stream.latest(Offset(topics={url: {"": 7}}))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 30)),
        st.tuples(st.just("gzip"), st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.sampled_from(["trigger", "lost", "restart", "touch"]), st.integers(0, 2), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.booleans())
def test_whatever_is_added_planned_lost_and_begun_again_each_line_comes_once(
    steps: list[tuple[str, int, int]], is_limited: bool
) -> None:
    """Given files that grow by any number of bytes, batches that were planned and lost, and restarts."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrivals, "_FOLD", 2)
        reader = Reader(Path(folder), most_bytes=1 if is_limited else None)
        texts = {name: b"".join(b'{"%d": %d}\n' % (name, line) for line in range(200)) for name in range(3)}
        written = dict.fromkeys(texts, 0)
        packed: list[bytes] = []
        moves: dict[str, Callable[[], object]] = {
            "trigger": reader.trigger,
            "lost": lambda: reader.trigger(read=False),
            "restart": reader.restart,
        }
        for move, name, count in steps:
            path = reader.folder / f"{name}.jsonl"
            if move == "append":
                append(path, texts[name][written[name] : written[name] + count])
                written[name] += count
            elif move == "gzip":
                lines = [b"packed %d %d" % (len(packed), line) for line in range(count)]
                place = reader.folder / f"{len(packed)}-{len(list(reader.folder.iterdir()))}.jsonl.gz"
                if not place.exists():
                    place.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
                    packed += lines
            elif move == "touch" and path.exists():
                os.utime(path, (time.time() - 10 * name,) * 2)
            elif move in moves:
                moves[move]()
        for name, text in texts.items():
            append(reader.folder / f"{name}.jsonl", text[written[name] :])
        assert reader.drain() == sorted([*packed, *(line for text in texts.values() for line in text.splitlines())])
