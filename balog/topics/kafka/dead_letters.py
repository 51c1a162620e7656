"""The dead letters of a group, in a compacted topic with the failed record's position as the key.

A dead letter is written before its message is settled. Written twice, after a crash in between, it is still one record.
A tombstone deletes a redriven dead letter. Both survive a crash of any process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec import structs

from balog.common.errors import MessageError, TopicError
from balog.event import MAX_EVENT_BYTES
from balog.event.batches import split
from balog.topics.base import DeadLetter, GivenUp
from balog.topics.kafka.clients import Clients
from balog.topics.kafka.partition import FetchedMessage
from balog.topics.kafka.records import (
    OutgoingRecord,
    StoredDeadLetter,
    again_record,
    as_bytes,
    dead_letter_record,
    new_number,
    read,
    read_dead_letter,
)

_AT_ONCE = 100
_BYTES_AT_ONCE = 16 * 1024 * 1024
_CONFIG = {"cleanup.policy": "compact", "max.message.bytes": str(MAX_EVENT_BYTES + 256 * 1024)}


@dataclass(eq=False)
class DeadLetters:
    """The dead letters of one group on one topic. Keeps about 200 bytes in memory for each.

    Args:
        name: the name of the topic with the dead letters.
        retry: the name of the group's retry topic, which receives redriven ones; ``make_retry`` creates it.
    """

    clients: Clients
    topic: str
    group: str
    name: str
    retry: str
    where: str
    make_retry: Callable[[], None]
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _offsets: dict[bytes, int] = field(default_factory=dict, init=False)
    _read_to: int = field(default=0, init=False)
    _made: bool = field(default=False, init=False)

    def write(self, given_up: Sequence[tuple[FetchedMessage, GivenUp]]) -> None:
        """Write dead letters, durably."""
        self._make()
        now = time.time()
        try:
            self._send([dead_letter_record(self.topic, self.group, held, why, now) for held, why in given_up])
        except MessageError:
            for held, why in given_up:
                self._write_what_fits(held, why, now)

    def _write_what_fits(self, held: FetchedMessage, why: GivenUp, now: float) -> None:
        """Write a dead letter with a shorter reason or, if necessary, without its body, so that it blocks no others."""
        size = len(held.body)
        reason = f"its {size} bytes are too large for {self.name} and lie at {held.origin}; {why.reason}"
        record = partial(dead_letter_record, self.topic, self.group, held)
        for dead_letter in (
            record(why, now),
            record(why, now, brief=True),
            record(structs.replace(why, reason=reason), now, brief=True)._replace(value=b""),
        ):
            try:
                return self._send([dead_letter])
            except MessageError as error:
                refused = error
        raise refused

    def _send(self, dead_letters: Sequence[OutgoingRecord]) -> None:
        try:
            self.clients.publisher.send(self.name, dead_letters, self.where)
        except TopicError as error:
            if error.retryable:
                self._made = False  # it may have been deleted
            raise

    def count(self) -> int:
        """Return the number of dead letters; this reads only the records since the last call."""
        with self._lock:
            self._look()
            return len(self._offsets)

    def list(self, limit: int) -> list[DeadLetter]:
        """Return the oldest dead letters."""
        return [stored.dead_letter for stored in self._stored(limit)]

    def redrive(self, decide: Callable[[DeadLetter], bytes | None], limit: int | None) -> int:
        """Write dead letters to the group's retry topic in batches, then delete them here."""
        decided = ((stored, decide(stored.dead_letter)) for stored in self._stored(limit))
        chosen = ((stored, body) for stored, body in decided if body is not None)
        return sum(map(self._send_back, split(chosen, lambda pair: len(pair[1]), _BYTES_AT_ONCE, _AT_ONCE)))

    def _send_back(self, batch: Sequence[tuple[StoredDeadLetter, bytes]]) -> int:
        self.make_retry()
        again = []
        for stored, body in batch:
            generation = stored.generation._replace(redrive=new_number(stored.generation.redrive))
            id, key = stored.dead_letter.id, stored.message_key
            again.append(again_record(id, body, key, stored.published, generation))
        self.clients.publisher.send(self.retry, again, self.where)
        gone = [OutgoingRecord(None, stored.key, [], stored.dead_letter.id) for stored, _ in batch]
        self.clients.publisher.send(self.name, gone, self.where)
        return len(batch)

    def _stored(self, limit: int | None) -> Iterator[StoredDeadLetter]:
        """Yield the oldest dead letters that exist at the time of the call."""
        with self._lock:
            end = self._look()
            offsets = sorted(self._offsets.values())[:limit]
        if not offsets:
            return
        wanted = set(offsets)
        for record in read(self.clients.settings, self.name, {0: (offsets[0], min(end, offsets[-1] + 1))}, self.where):
            if (
                record.offset() in wanted
                and (dead_letter := read_dead_letter(record, self.topic, self.group)) is not None
            ):
                yield dead_letter

    def _look(self) -> int:
        """Read the records since the last call; return the offset after the last one."""
        if not self.clients.partitions(self.name, self.where):
            self._offsets.clear()
            self._read_to = 0
            return 0
        start, end = self.clients.bounds(self.name, [0], self.where)[0]
        if end < self._read_to:  # another topic with this name
            self._offsets.clear()
            self._read_to = 0
        begin = max(start, self._read_to)
        for record in read(self.clients.settings, self.name, {0: (begin, end)}, self.where):
            dead_letter = None if record.value() is None else read_dead_letter(record, self.topic, self.group)
            self._offsets.pop(as_bytes(record.key()), None)
            if dead_letter is not None:
                self._offsets[dead_letter.key] = dead_letter.offset
        self._read_to = end
        if start:
            self._offsets = {key: offset for key, offset in self._offsets.items() if offset >= start}
        return end

    def _make(self) -> None:
        if not self._made:
            if not self.clients.partitions(self.name, self.where):
                self.clients.make_topic(self.name, 1, _CONFIG, self.where)
            self._made = True
