"""Publish archived events to a topic, selected by time and channel; resumable, with invalid lines set aside."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import IO, Annotated, ClassVar

import msgspec
from msgspec import Struct

from balog.errors import BalogError, ConfigError, EventError, MessageError, MissingExtraError
from balog.event import Event, encode
from balog.stats import Stats, counter
from balog.storage import Storage
from balog.storage.local_files import sync
from balog.topics.archives import Line, day_of, read_event, read_lines
from balog.topics.base import Message, Topic
from balog.topics.publisher import publish_each

_BATCH = 500
_BATCH_BYTES = 4 << 20
_MAX_RAW = 1 << 20
_ENDINGS = (".jsonl", ".ndjson", ".json", ".log", ".tsv", ".txt", ".gz", ".zst")


class Choice(Struct, frozen=True):
    """Selects events: at or after ``after``, before ``before``, of channels and from files that match globs.

    A file is matched by its path below the archive. Folders ``date=…`` of other days are skipped.
    """

    after: datetime | None = None
    before: datetime | None = None
    channel: str | None = None
    files: str | None = None

    def wants_folder(self, name: str) -> bool:
        """Return whether a folder may hold selected events."""
        day = day_of(name)
        if day is None:
            return True
        too_early = self.after is not None and day < self.after.date()
        return not too_early and (self.before is None or day <= self.before.date())

    def wants_file(self, name: str) -> bool:
        """Return whether to read a file: by the glob, else by its suffix; always if the file itself was named."""
        return not name or (name.endswith(_ENDINGS) if self.files is None else fnmatchcase(name, self.files))

    def wants(self, event: Event) -> bool:
        """Return whether an event is selected."""
        when = event.header.timestamp
        return (
            (self.after is None or when >= self.after)
            and (self.before is None or when < self.before)
            and (self.channel is None or fnmatchcase(event.header.channel, self.channel))
        )


class IngestStats(Stats):
    """Counters of an ingest."""

    component: ClassVar[str] = "ingest"
    files: Annotated[int, counter("Files that were read.")] = 0
    damaged: Annotated[int, counter("Files that could not be read to their end.")] = 0
    sent: Annotated[int, counter("Events that were published.")] = 0
    new: Annotated[int, counter("Published events that the topic did not have.")] = 0
    unwanted: Annotated[int, counter("Events that were not selected.")] = 0
    bad: Annotated[int, counter("Lines that are not events, or too large for the topic.")] = 0


class Mark(Struct):
    """Progress in a file: lines up to ``line`` are published; ``done`` if all of its ``size`` bytes are.

    ``first`` is a hash of its first line: a file with another one is a different file, as after a rotation.
    """

    file: str
    line: int
    size: int
    done: bool = False
    first: str = ""


class IngestState:
    """A file of JSON lines with the progress of an ingest to one topic.

    Args:
        path: the file; created if missing.
        target: identifies the topic, equally in each run.

    Raises:
        ConfigError: the file belongs to another topic, or is not a state file.
    """

    def __init__(self, path: str, target: str) -> None:
        head = msgspec.json.encode({"target": target}) + b"\n"
        try:
            self._marks, whole = _read_marks(path, target, head)
            self._file = open(path, "ab")  # noqa: SIM115
            self._file.truncate(whole)  # a line that a killed process did not finish
            if not whole:
                self._append(head)
        except OSError as error:
            raise ConfigError(f"cannot be used: {error.strerror or error}", path) from None

    def mark(self, file: str) -> Mark | None:
        """Return the progress in a file; None before its start."""
        return self._marks.get(file)

    def keep(self, mark: Mark) -> None:
        """Store the progress in a file."""
        self._append(msgspec.json.encode(mark) + b"\n")

    def _append(self, line: bytes) -> None:
        self._file.write(line)
        sync(self._file)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _read_marks(path: str, target: str, head: bytes) -> tuple[dict[str, Mark], int]:
    """Return the marks of a state file, and the number of bytes in whole lines."""
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
        marks = [msgspec.json.decode(line, type=Mark) for line in lines]
    except (msgspec.DecodeError, UnicodeError, ValueError, KeyError):
        raise ConfigError("is not the state of an ingest; use another file", path) from None
    if found != target:
        raise ConfigError(f"is the state of an ingest into {found}; use another file", path)
    return {mark.file: mark for mark in marks}, len(whole)


@dataclass(eq=False)
class Ingest:
    """Publishes selected events of archives, file by file in the order of their names.

    Args:
        topic: None publishes nothing and only counts.
        choice: selects the events.
        key_of: returns the key of an event's message.
        progress: the state of an earlier run, whose lines are skipped; None reads all lines.
        quarantine: receives each invalid line as JSON: ``file``, ``line``, ``reason``, ``raw``.
        report: called with one line of text for each invalid line and each damaged file.
        step: called after each batch and file with the bytes of finished files, and the counts.
        should_stop: called after each batch; returns whether to stop.
    """

    topic: Topic | None
    choice: Choice
    key_of: Callable[[Event], str | None] = lambda event: None
    progress: IngestState | None = None
    quarantine: IO[bytes] | None = None
    report: Callable[[str], object] = lambda text: None
    step: Callable[[int, IngestStats], object] = lambda done, counts: None
    should_stop: Callable[[], bool] = lambda: False
    counts: IngestStats = field(default_factory=IngestStats)
    _done_bytes: int = field(default=0, init=False)

    def find(self, storage: Storage) -> list[tuple[str, int]]:
        """Return the files of an archive to read, each with its size in bytes.

        Raises:
            StorageError: the archive can't be reached, or does not exist.
        """
        found = storage.files(self.choice.wants_folder)
        return [(name, size) for name, size in found if self.choice.wants_file(name)]

    def run(self, storage: Storage, files: Sequence[tuple[str, int]]) -> None:
        """Publish the events of an archive's files; report a damaged file, and continue with the others.

        Raises:
            StorageError: a file can't be read.
            TopicError: the topic can't store more events.
        """
        for name, size in files:
            if self.should_stop():
                return
            self._file(storage, name, size)
            self._done_bytes += size
            self.step(self._done_bytes, self.counts)

    def _file(self, storage: Storage, name: str, size: int) -> None:
        place = f"{storage.url}/{name}" if name else storage.url
        mark = self.progress.mark(place) if self.progress else None
        if mark is not None and mark.done and mark.size == size:
            return
        self.counts.files += 1
        reading = _Reading(place, mark)
        damage, is_over = "", False
        with closing(storage.open(name)) as source:
            lines = read_lines(source)
            while not (damage or is_over):
                batch: list[tuple[Line, Message]] = []
                try:
                    is_over = self._fill(batch, lines, reading)
                except MissingExtraError:
                    raise
                except BalogError as error:
                    damage = str(error)
                self._publish(batch, place)
                self._keep(reading.mark(size, done=is_over))
                self.step(self._done_bytes, self.counts)
                if self.should_stop():
                    return
        if damage:
            self.counts.damaged += 1
            self.report(f"{place}: {damage}; the lines before that were read")

    def _fill(self, batch: list[tuple[Line, Message]], lines: Iterator[Line], reading: _Reading) -> bool:
        """Read the next batch. Return whether it is the last."""
        size = 0
        for line in lines:
            if reading.is_known(line):
                continue
            try:
                event = read_event(line, reading.file)
            except EventError as error:
                if line.is_ended:
                    reading.line = line.number
                self._bad(line, reading.file, str(error))
                continue
            reading.line = line.number
            if not self.choice.wants(event):
                self.counts.unwanted += 1
                continue
            body = encode(event)
            batch.append((line, Message(event.header.id, body, self.key_of(event))))
            size += len(body)
            if len(batch) >= _BATCH or size >= _BATCH_BYTES:
                return False
        return True

    def _publish(self, batch: Sequence[tuple[Line, Message]], place: str) -> None:
        if not batch:
            return
        self.counts.sent += len(batch)
        if self.topic is None:
            return
        line_of = {message.id: line for line, message in batch}

        def refuse(message: Message, error: MessageError) -> None:
            self.counts.sent -= 1
            self._bad(line_of[message.id], place, str(error))

        self.counts.new += publish_each(self.topic, [message for _, message in batch], refuse)

    def _keep(self, mark: Mark) -> None:
        if self.progress and self.topic:
            self.progress.keep(mark)

    def _bad(self, line: Line, place: str, reason: str) -> None:
        self.counts.bad += 1
        self.report(f"{place}: line {line.number}: {reason}")
        if self.quarantine is not None:
            raw = line.data[:_MAX_RAW].decode("utf-8", "backslashreplace")
            record = {"file": place, "line": line.number, "reason": reason, "raw": raw}
            self.quarantine.write(msgspec.json.encode(record) + b"\n")
            self.quarantine.flush()


class _Reading:
    """The progress of reading a file.

    Args:
        mark: the progress of the last run.
    """

    def __init__(self, file: str, mark: Mark | None) -> None:
        self.file = file
        self.line = 0
        self._published = mark.line if mark else 0
        self._was = mark.first if mark else ""
        self._first = ""

    def is_known(self, line: Line) -> bool:
        """Return whether an earlier run published a line."""
        if not self._first:
            self._first = hashlib.sha256(line.data).hexdigest()[:16]
            if self._first != self._was:
                self._published = 0
            self.line = self._published
        return line.number <= self._published

    def mark(self, size: int, done: bool) -> Mark:
        """Return the progress to store."""
        return Mark(self.file, self.line, size, done, self._first)
