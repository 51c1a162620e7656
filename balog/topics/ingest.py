"""Publish archived events to a topic, selected by time and channel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar

from msgspec import Struct

from balog.errors import BalogError, EventError, MessageError, MissingExtraError
from balog.event import Event, encode
from balog.stats import Stats, counter
from balog.storage import Storage
from balog.topics.archives import Line, day_of, read_event, read_lines
from balog.topics.base import Message, Topic
from balog.topics.publisher import publish_each

_BATCH = 500
_BATCH_BYTES = 4 << 20
_ENDINGS = (".jsonl", ".ndjson", ".json", ".log", ".tsv", ".txt", ".gz", ".zst")


class Choice(Struct, frozen=True):
    """Selects events: at or after ``after``, before ``before``, of channels that match a glob.

    Folders ``date=…`` of other days are skipped.
    """

    after: datetime | None = None
    before: datetime | None = None
    channel: str | None = None

    def wants_folder(self, name: str) -> bool:
        """Return whether a folder may hold selected events."""
        day = day_of(name)
        if day is None:
            return True
        too_early = self.after is not None and day < self.after.date()
        return not too_early and (self.before is None or day <= self.before.date())

    def wants_file(self, name: str) -> bool:
        """Return whether to read a file, by its suffix; always if the file itself was named."""
        return not name or name.endswith(_ENDINGS)

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


@dataclass(eq=False)
class Ingest:
    """Publishes selected events of archives, file by file in the order of their names.

    Args:
        topic: None publishes nothing and only counts.
        choice: selects the events.
        key_of: returns the key of an event's message.
        report: called with one line of text for each invalid line and each damaged file.
        step: called after each batch and file with the bytes of finished files, and the counts.
        should_stop: called after each batch; returns whether to stop.
    """

    topic: Topic | None
    choice: Choice
    key_of: Callable[[Event], str | None] = lambda event: None
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
            self._file(storage, name)
            self._done_bytes += size
            self.step(self._done_bytes, self.counts)

    def _file(self, storage: Storage, name: str) -> None:
        place = f"{storage.url}/{name}" if name else storage.url
        self.counts.files += 1
        damage, is_over = "", False
        with closing(storage.open(name)) as source:
            lines = read_lines(source)
            while not (damage or is_over):
                batch: list[tuple[Line, Message]] = []
                try:
                    is_over = self._fill(batch, lines, place)
                except MissingExtraError:
                    raise
                except BalogError as error:
                    damage = str(error)
                self._publish(batch, place)
                self.step(self._done_bytes, self.counts)
                if self.should_stop():
                    return
        if damage:
            self.counts.damaged += 1
            self.report(f"{place}: {damage}; the lines before that were read")

    def _fill(self, batch: list[tuple[Line, Message]], lines: Iterator[Line], place: str) -> bool:
        """Read the next batch. Return whether it is the last."""
        size = 0
        for line in lines:
            try:
                event = read_event(line, place)
            except EventError as error:
                self._bad(line, place, str(error))
                continue
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

    def _bad(self, line: Line, place: str, reason: str) -> None:
        self.counts.bad += 1
        self.report(f"{place}: line {line.number}: {reason}")
