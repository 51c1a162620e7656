"""Archives played into a topic again: chosen by time and channel, resumable, with what is no event set aside."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from fnmatch import fnmatchcase
from typing import IO

import msgspec
from msgspec import Struct

from balog.errors import BalogError, ConfigError, EventError
from balog.event import Event, encode
from balog.storage import Storage
from balog.topics.archives import Line, day_of, read_event, read_lines
from balog.topics.base import Message, Topic

__all__ = ["Choice", "Counts", "Ingest", "Progress"]

_BATCH = 500
_BATCH_BYTES = 4 << 20
_MAX_RAW = 1 << 20
_ENDINGS = (".jsonl", ".ndjson", ".json", ".log", ".tsv", ".txt", ".gz", ".zst")


class Choice(Struct, frozen=True):
    """What of an archive is wanted: events at or after ``after`` and before ``before``, of channels that match a glob,
    from files whose path below the archive matches one. Folders ``date=…`` of other days are not looked into.
    """

    after: datetime | None = None
    before: datetime | None = None
    channel: str | None = None
    files: str | None = None

    def wants_folder(self, name: str) -> bool:
        """Tell whether a folder may hold what is wanted."""
        day = day_of(name)
        if day is None:
            return True
        too_early = self.after is not None and day < self.after.date()
        return not too_early and (self.before is None or day <= self.before.date())

    def wants_file(self, name: str) -> bool:
        """Tell whether a file is to be read; with no glob, by its ending. One that was named itself always is."""
        return not name or (name.endswith(_ENDINGS) if self.files is None else fnmatchcase(name, self.files))

    def wants(self, event: Event) -> bool:
        """Tell whether an event is wanted."""
        when = event.header.timestamp
        return (
            (self.after is None or when >= self.after)
            and (self.before is None or when < self.before)
            and (self.channel is None or fnmatchcase(event.header.channel, self.channel))
        )


class Counts(Struct):
    """What an ingest did, in events: ``sent`` were published, of which the topic had not yet ``new``; ``unwanted``
    were not chosen; ``bad`` lines were none. ``files`` were read, of which ``damaged`` not to their end.
    """

    files: int = 0
    damaged: int = 0
    sent: int = 0
    new: int = 0
    unwanted: int = 0
    bad: int = 0


class _Mark(Struct):
    """How far a file is: lines up to ``line`` are published; ``done`` when all of its ``size`` bytes are."""

    file: str
    line: int
    size: int
    done: bool = False


class Progress:
    """A file of JSON lines that remembers how far an ingest is; it belongs to one topic.

    Args:
        path: the file; made when missing.
        target: says which topic, in a way that is the same the next time.

    Raises:
        ConfigError: it belongs to another topic, or is no such file.
    """

    def __init__(self, path: str, target: str) -> None:
        head = msgspec.json.encode({"target": target}) + b"\n"
        try:
            self._marks, whole = _read_marks(path, target, head)
            self._file = open(path, "ab")  # noqa: SIM115
            self._file.truncate(whole)  # what a kill cut off
            if not whole:
                self._append(head)
        except OSError as error:
            raise ConfigError(f"cannot be used: {error.strerror or error}", path) from None

    def line(self, file: str, size: int) -> int | None:
        """Give the last line that is published already, 0 for none; None when the whole file is."""
        mark = self._marks.get(file)
        if mark is None:
            return 0
        return None if mark.done and mark.size == size else mark.line

    def keep(self, file: str, line: int, size: int, done: bool = False) -> None:
        """Remember that lines up to this one are published."""
        self._append(msgspec.json.encode(_Mark(file, line, size, done)) + b"\n")

    def _append(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _read_marks(path: str, target: str, head: bytes) -> tuple[dict[str, _Mark], int]:
    """Give what a state remembers, and the bytes of it that are whole lines."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return {}, 0
    if head.startswith(data):
        return {}, len(head) if data == head else 0
    whole = data[: data.rfind(b"\n") + 1]
    try:
        first, *lines = whole.splitlines()
        found = msgspec.json.decode(first, type=dict[str, str])["target"]
        marks = [msgspec.json.decode(line, type=_Mark) for line in lines]
    except (msgspec.DecodeError, UnicodeError, ValueError, KeyError):
        raise ConfigError("is not the state of an ingest; give another file", path) from None
    if found != target:
        raise ConfigError(f"is the state of an ingest into {found}; give another file", path)
    return {mark.file: mark for mark in marks}, len(whole)


class Ingest:
    """Publishes what is chosen of archives, file by file in the order of their names.

    Args:
        topic: None publishes nothing and only counts.
        choice: what is wanted.
        progress: skips what was published before; None begins at the beginning.
        quarantine: gets each bad line as JSON: ``file``, ``line``, ``reason``, ``raw``.
        say: called with a line of text for people: of a bad line, of a damaged file.
        step: called after each batch and file with the bytes of files that are done, and the counts.
        should_stop: asked after each batch.
    """

    def __init__(
        self,
        topic: Topic | None,
        choice: Choice,
        *,
        progress: Progress | None = None,
        quarantine: IO[bytes] | None = None,
        say: Callable[[str], object] = lambda text: None,
        step: Callable[[int, Counts], object] = lambda done, counts: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.counts = Counts()
        self._topic = topic
        self._choice = choice
        self._progress = progress
        self._quarantine = quarantine
        self._say = say
        self._step = step
        self._should_stop = should_stop
        self._done_bytes = 0

    def find(self, storage: Storage) -> list[tuple[str, int]]:
        """Give the files of an archive that are to be read, each with its bytes.

        Raises:
            StorageError: it can't be reached, or is not there.
        """
        found = storage.files(self._choice.wants_folder)
        return [(name, size) for name, size in found if self._choice.wants_file(name)]

    def run(self, storage: Storage, files: Sequence[tuple[str, int]]) -> None:
        """Publish what is in files of an archive; a damaged one is told, and the others go on.

        Raises:
            StorageError: a file can't be read.
            TopicError: the topic takes no more.
        """
        for name, size in files:
            if self._should_stop():
                return
            self._file(storage, name, size)
            self._done_bytes += size
            self._step(self._done_bytes, self.counts)

    def _file(self, storage: Storage, name: str, size: int) -> None:
        place = f"{storage.url}/{name}" if name else storage.url
        begin = self._progress.line(place, size) if self._progress else 0
        if begin is None:
            return
        self.counts.files += 1
        last, damage = begin, ""
        with closing(storage.open(name)) as source:
            lines = read_lines(source)
            while True:
                try:
                    batch, read = self._batch(lines, place, begin)
                except BalogError as error:
                    batch, read, damage = self._left, self._last, str(error)
                self._publish(batch)
                last = max(last, read)
                if damage or not read:
                    break
                if self._progress and self._topic:
                    self._progress.keep(place, last, size)
                self._step(self._done_bytes, self.counts)
                if self._should_stop():
                    return
        if damage:
            self.counts.damaged += 1
            self._say(f"{place}: {damage}; its lines up to there were taken")
        if self._progress and self._topic:
            self._progress.keep(place, last, size, done=not damage)

    def _batch(self, lines: Iterator[Line], place: str, begin: int) -> tuple[list[Message], int]:
        """Read the next batch; give it and the number of its last line, 0 at the end."""
        self._left: list[Message] = []
        self._last = size = 0
        for line in lines:
            self._last = line.number
            if line.number <= begin:
                continue
            try:
                event = read_event(line, place)
            except EventError as error:
                self._bad(line, place, str(error))
                continue
            if not self._choice.wants(event):
                self.counts.unwanted += 1
                continue
            body = encode(event)
            self._left.append(Message(event.header.id, body))
            size += len(body)
            if len(self._left) >= _BATCH or size >= _BATCH_BYTES:
                break
        return self._left, self._last

    def _publish(self, batch: list[Message]) -> None:
        if batch:
            self.counts.new += self._topic.publish(batch) if self._topic else 0
            self.counts.sent += len(batch)

    def _bad(self, line: Line, place: str, reason: str) -> None:
        self.counts.bad += 1
        self._say(f"{place}: line {line.number}: {reason}")
        if self._quarantine is not None:
            raw = line.data[:_MAX_RAW].decode("utf-8", "backslashreplace")
            record = {"file": place, "line": line.number, "reason": reason, "raw": raw}
            self._quarantine.write(msgspec.json.encode(record) + b"\n")
            self._quarantine.flush()
