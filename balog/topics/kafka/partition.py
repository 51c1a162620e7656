"""A group member's state of one assigned partition, without clients, clocks and threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from balog.topics.base import Generation
from balog.topics.kafka.progress import ROOMY, CommittedProgress, encode

_FIRST = Generation()


@dataclass(slots=True, eq=False)
class FetchedMessage:
    """A message that was fetched and is not settled yet.

    Attributes:
        attempts: number of deliveries from this partition.
        before: number of deliveries from another partition, before the message went to the group's retry topic.
        generation: its generation in the group's retry topic.
        ready_at: end of its lease or delay, in seconds on the member's clock.
        token: the delivery that holds it; 0 for none.
        touched: whether it was delivered at least once, here or elsewhere.
        settling: whether it is being settled; meanwhile it is neither delivered nor dropped.
        settled: whether its ack or dead letter is written, so that a commit may pass it.
        is_tombstone: whether the record has no value.
    """

    partition: AssignedPartition
    offset: int
    id: str
    body: bytes
    key: str | None
    published: float
    attempts: int = 0
    before: int = 0
    generation: Generation = _FIRST
    ready_at: float = 0.0
    token: int = 0
    touched: bool = False
    settling: bool = False
    settled: bool = False
    is_tombstone: bool = False

    @property
    def deliveries(self) -> int:
        """The number of deliveries, from here and before."""
        return self.before + self.attempts

    @property
    def origin(self) -> str:
        """The position of the record, ``topic-partition-offset``."""
        return f"{self.partition.topic}-{self.partition.number}-{self.offset}"

    def recall(self, attempts: int) -> None:
        """Continue with the deliveries that the last commit recorded."""
        self.attempts = attempts
        self.touched = True

    def deliver(self, token: int, until: float) -> None:
        """Assign it to a delivery."""
        self.token = token
        self.ready_at = until
        self.attempts += 1
        self.touched = True
        self.partition.note_delivery(self.offset)

    def take_back(self, ready_at: float, *, attempted: bool) -> None:
        """Release it from its delivery, to be delivered again."""
        self.token = 0
        self.ready_at = ready_at
        if not attempted:
            self.attempts -= 1
            self.partition.note_change()

    def put_off(self, ready_at: float) -> None:
        """Move the end of its lease or delay."""
        self.ready_at = ready_at

    def claim(self) -> None:
        """Begin to settle it."""
        self.settling = True

    def pass_commits(self) -> None:
        """Note that its ack or dead letter is written, so that commits may pass it."""
        self.settled = True
        self.partition.note_change()

    def unclaim(self) -> None:
        """Keep it: it could not be settled."""
        self.settling = self.settled = False
        self.partition.note_change()


class AssignedPartition:
    """The fetched and settled messages of one partition, and the progress for its next commit.

    ``fresh`` are the messages that were never delivered. ``handed`` is the offset up to which messages were delivered.

    Args:
        topic: the topic's name.
        number: the partition's.
        commit: the group's committed offset; None without one.
        progress: the progress in that commit's metadata.
    """

    def __init__(
        self, topic: str, number: int, commit: int | None = None, progress: CommittedProgress | None = None
    ) -> None:
        self.topic = topic
        self.number = number
        self.next_offset = commit
        self.held: dict[int, FetchedMessage] = {}
        self.fresh: deque[FetchedMessage] = deque()
        self.bytes = 0
        self.fresh_bytes = 0
        self.replay = progress.replay if progress else 0
        self.draining = False
        self.paused = False
        self.roomy = True
        self.handed = progress.handed if progress else 0
        self._changes = self._committed = 0
        self._recalled = dict(progress.unsettled) if progress else {}
        self._recalled_end = self.handed

    def add(self, held: FetchedMessage, ready_at: float | None = None) -> bool:
        """Add a fetched message. Return False if it is already settled.

        Args:
            ready_at: the time of its delivery, for a delayed message; it then does not count as fresh.
        """
        offset = held.offset
        if self.next_offset is not None and offset < self.next_offset:
            if offset in self.held or self.held or self.fresh:
                return False  # fetched twice
            self._start_anew()  # the log is another one than that of the commit
        self.next_offset = offset + 1
        self._changes += 1
        if offset < self._recalled_end:
            attempts = self._recalled.pop(offset, None)
            if attempts is None:
                return False
            held.recall(attempts)
        elif self._recalled:
            self._recalled.clear()  # those are gone from the log
        self.held[offset] = held
        self.bytes += len(held.body)
        if ready_at is None:
            self.fresh.append(held)
            self.fresh_bytes += len(held.body)
        else:
            held.put_off(ready_at)
            self.handed = max(self.handed, offset + 1)
        return True

    def reach(self, offset: int) -> None:
        """Record that the log was read up to an offset, even if only gaps precede it."""
        if self.next_offset is None or offset > self.next_offset:
            self.next_offset = offset
            self._changes += 1

    def pop_fresh(self) -> FetchedMessage:
        """Remove and return the oldest message that was never delivered."""
        held = self.fresh.popleft()
        self.fresh_bytes -= len(held.body)
        return held

    def note_delivery(self, offset: int) -> None:
        """Note that the message at an offset is delivered."""
        self.handed = max(self.handed, offset + 1)
        self._changes += 1

    def note_change(self) -> None:
        """Note that the next commit differs from the last one."""
        self._changes += 1

    def drain(self) -> None:
        """Deliver no more, because the partition goes to another member."""
        self.draining = True

    def steer(self, limit: int, *, is_stuck: bool) -> bool | None:
        """Return True to pause it at a limit of offsets after the commit, False to resume it, None to go on."""
        paused = is_stuck or self.trail > (limit // 2 if self.paused else limit)
        if paused == self.paused:
            return None
        self.paused = paused
        return paused

    def settle(self, held: FetchedMessage) -> None:
        """Drop a settled message."""
        del self.held[held.offset]
        self.bytes -= len(held.body)
        self._changes += 1

    @property
    def commit(self) -> int | None:
        """The first unsettled offset; None before anything was fetched."""
        for offset, held in self.held.items():
            if not held.settled:
                return offset
        return self.next_offset

    @property
    def trail(self) -> int:
        """The number of offsets between the commit and the last delivery."""
        commit = self.commit
        return 0 if commit is None else max(0, self.handed - commit)

    def progress(self) -> CommittedProgress | None:
        """Return the progress to commit; None before anything was fetched."""
        commit = self.commit
        if commit is None or self.next_offset is None:
            return None
        unsettled: dict[int, int] = {}
        for offset, held in self.held.items():
            if offset >= self.handed:
                break
            if not held.settled:
                unsettled[offset] = held.attempts
        for offset, attempts in self._recalled.items():
            if offset >= self.next_offset:
                unsettled[offset] = attempts
        return CommittedProgress(commit, max(self.handed, commit), unsettled, self.replay)

    def uncommitted(self) -> tuple[CommittedProgress, int] | None:
        """Return the progress to commit, and the number for ``note_commit``; None without a change."""
        progress = self.progress() if self._changes != self._committed else None
        return (progress, self._changes) if progress is not None else None

    def encode(self, progress: CommittedProgress) -> str:
        """Return the metadata of a commit; while it is too long, no new messages are delivered."""
        text, encoded_to = encode(progress)
        self.roomy = len(text) <= ROOMY and encoded_to == progress.handed
        return text

    def note_commit(self, number: int) -> None:
        """Note that the progress is committed."""
        self._committed = number

    def generation_of(self, held: FetchedMessage) -> Generation:
        """Return the generation of a message: its own, or a later replay's."""
        return Generation(max(held.generation.replay, self.replay), held.generation.redrive)

    def waiting(self) -> Iterator[FetchedMessage]:
        """Return the messages that wait for a later delivery, oldest first."""
        return (held for held in self.held.values() if held.ready_at and not held.token and not held.settling)

    def _start_anew(self) -> None:
        self._recalled = {}
        self._recalled_end = self.handed = 0
