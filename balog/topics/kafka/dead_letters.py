"""A group's dead letters: a compacted topic of its own, keyed by the record that died.

A letter is written before the message is settled; written twice, after a crash in between, it is still one. A letter
that was redriven is deleted by a tombstone. Both survive whatever happens to the processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from balog.errors import MessageError, TopicError
from balog.event import MAX_EVENT_BYTES
from balog.topics.base import DeadLetter, Generation, GivenUp
from balog.topics.kafka.clients import Clients
from balog.topics.kafka.partition import FetchedMessage
from balog.topics.kafka.publisher import Outgoing
from balog.topics.kafka.reader import read
from balog.topics.kafka.records import Letter, again_headers, letter_headers, new_number, read_letter

__all__ = ["DeadLetters"]

_AT_ONCE = 100
_BYTES_AT_ONCE = 16 * 1024 * 1024
_CONFIG = {"cleanup.policy": "compact", "max.message.bytes": str(MAX_EVENT_BYTES + 256 * 1024)}


class DeadLetters:
    """Those of one group on one topic. Knows in memory which letters there are, some 200 bytes for each.

    Args:
        name: of the topic that they lie in.
        retry: the topic that they are redriven to; made by ``make_retry``.
    """

    def __init__(
        self,
        clients: Clients,
        topic: str,
        group: str,
        name: str,
        retry: str,
        where: str,
        make_retry: Callable[[], None],
    ) -> None:
        self._clients = clients
        self._topic = topic
        self._group = group
        self._name = name
        self._retry = retry
        self._where = where
        self._make_retry = make_retry
        self._lock = threading.Lock()
        self._offsets: dict[bytes, int] = {}
        self._read_to = 0
        self._made = False

    def write(self, given_up: Sequence[tuple[FetchedMessage, GivenUp]]) -> None:
        """Write letters, durably."""
        self._make()
        now = time.time()
        try:
            self._send([self._letter(held, why, now) for held, why in given_up])
        except MessageError:
            for held, why in given_up:
                self._write_what_fits(held, why, now)

    def _write_what_fits(self, held: FetchedMessage, why: GivenUp, now: float) -> None:
        """Write a letter with less of its reason, or else without its body, which must not block what is behind it."""
        size = len(held.body)
        reason = f"its {size} bytes are too large for {self._name} and lie at {_origin(held)}; {why.reason}"
        for letter in (
            self._letter(held, why, now),
            self._letter(held, why, now, brief=True),
            self._letter(held, structs.replace(why, reason=reason), now, brief=True)._replace(value=b""),
        ):
            try:
                return self._send([letter])
            except MessageError as error:
                refused = error
        raise refused

    def _send(self, letters: Sequence[Outgoing]) -> None:
        try:
            self._clients.publisher.send(self._name, letters, self._where)
        except TopicError as error:
            if error.retryable:
                self._made = False  # somebody may have deleted it
            raise

    def _letter(self, held: FetchedMessage, why: GivenUp, now: float, *, brief: bool = False) -> Outgoing:
        origin = _origin(held)
        attempts = held.before + held.attempts
        letter = DeadLetter(held.id, b"", self._group, why.reason, attempts, now, why.consumers, why.traceback)
        headers = letter_headers(
            *(self._topic, letter, origin, held.key, held.published, held.partition.generation_of(held)), brief=brief
        )
        return Outgoing(held.body, origin, headers, held.id)

    def count(self) -> int:
        """Return the number of letters; reads only what came since it was last asked."""
        with self._lock:
            self._look()
            return len(self._offsets)

    def list(self, limit: int) -> list[DeadLetter]:
        """Return the oldest letters."""
        found = []
        for letter in self._letters(limit):
            found.append(letter.letter)
        return found

    def redrive(self, decide: Callable[[DeadLetter], bytes | None], limit: int | None) -> int:
        """Write letters to the group's retry topic, then delete them here, some at a time."""
        back = size = 0
        batch: list[tuple[Letter, bytes]] = []
        for letter in self._letters(limit):
            body = decide(letter.letter)
            if body is None:
                continue
            batch.append((letter, body))
            size += len(body)
            if len(batch) >= _AT_ONCE or size >= _BYTES_AT_ONCE:
                back += self._send_back(batch)
                batch, size = [], 0
        return back + self._send_back(batch)

    def _send_back(self, batch: Sequence[tuple[Letter, bytes]]) -> int:
        if not batch:
            return 0
        self._make_retry()
        again = [
            Outgoing(
                body,
                letter.message_key,
                again_headers(letter.letter.id, letter.message_key, letter.published, _next(letter.generation)),
                letter.letter.id,
            )
            for letter, body in batch
        ]
        self._clients.publisher.send(self._retry, again, self._where)
        gone = [Outgoing(None, letter.key, [], letter.letter.id) for letter, _ in batch]
        self._clients.publisher.send(self._name, gone, self._where)
        return len(batch)

    def _letters(self, limit: int | None) -> Iterator[Letter]:
        """Yield the oldest letters that were there when this was asked."""
        with self._lock:
            end = self._look()
            offsets = sorted(self._offsets.values())[:limit]
        if not offsets:
            return
        wanted = set(offsets)
        for record in read(
            self._clients.settings, self._name, {0: (offsets[0], min(end, offsets[-1] + 1))}, self._where
        ):
            if record.offset() in wanted and (letter := read_letter(record, self._topic, self._group)) is not None:
                yield letter

    def _look(self) -> int:
        """Read what came since the last time; return the offset after the last record."""
        if not self._clients.partitions(self._name, self._where):
            self._offsets.clear()
            self._read_to = 0
            return 0
        start, end = self._clients.bounds(self._name, [0], self._where)[0]
        if end < self._read_to:  # another topic of that name
            self._offsets.clear()
            self._read_to = 0
        begin = max(start, self._read_to)
        for record in read(self._clients.settings, self._name, {0: (begin, end)}, self._where):
            letter = None if record.value() is None else read_letter(record, self._topic, self._group)
            key = record.key()
            self._offsets.pop(key if isinstance(key, bytes) else str(key).encode(), None)
            if letter is not None:
                self._offsets[letter.key] = letter.offset
        self._read_to = end
        if start:
            self._offsets = {key: offset for key, offset in self._offsets.items() if offset >= start}
        return end

    def _make(self) -> None:
        if not self._made:
            if not self._clients.partitions(self._name, self._where):
                self._clients.make_topic(self._name, 1, self._clients.settings.replication, _CONFIG, self._where)
            self._made = True


def _next(generation: Generation) -> Generation:
    """Return the generation of a letter that is redriven."""
    return generation._replace(redrive=new_number(generation.redrive))


def _origin(held: FetchedMessage) -> str:
    return f"{held.partition.topic}-{held.partition.number}-{held.offset}"
