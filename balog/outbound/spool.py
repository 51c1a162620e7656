"""Events that wait on disk for a sink that does not take them, until it does.

    SPOOL/
      statsd-localhost-8125-1f0c9a31/    a folder for each sink, made of its name and its config
        sink.json                        how to build the sink again; it refers to secrets and holds none
        <id>.jsonl                       segments: the events, in the order of their names
        dead/<id>.jsonl                  dead letters

Several brokers may share a spool: each segment belongs to who has it open. What a dead one left is adopted by the next
with the same spool and sink, or sent by ``balog replay``. All of it is for the owner's eyes only (0700, 0600).
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from balog.errors import ConfigError
from balog.local_path import local_path
from balog.outbound.dead_letters import DeadLetters
from balog.outbound.segment import Segment
from balog.outbound.sync_window import SHORTEST_WINDOW
from balog.storage.local_files import make_folder, replace_file

__all__ = ["Appended", "LaneSpool", "Spool", "SpoolConfig", "SpooledSink", "lane_folder"]

WhenFull = Literal["block", "drop_oldest", "drop_newest"]

_OPTIONS = ("where", "batch", "retry")  # how a sink is fed, not which one it is
_PARTS = 16
_LEAST_BYTES = 1 << 16
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {
    errno.EACCES,
    errno.EEXIST,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}


class SpoolConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A folder where events wait that a sink does not take; ``balog replay`` sends what is left there."""

    path: Annotated[
        str,
        Meta(min_length=1, max_length=1000, description="The folder; made when it is not there. Brokers may share it."),
    ]
    max_bytes: Annotated[
        int, Meta(ge=1 << 16, description="Bytes of all files in the folder, dead letters too, at most.")
    ] = 1 << 30
    when_full: Annotated[
        WhenFull,
        Meta(
            description="drop_newest and drop_oldest lose events and count them; block makes the stream wait until the "
            "sink takes some: the one case in which telemetry may hold up data."
        ),
    ] = "drop_newest"
    sync: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds within which an event is on disk that its sink has not taken. 0, as anything below "
            "0.1: before its line passes on; every event is written then.",
        ),
    ] = 1.0


class Appended(NamedTuple):
    """What became of events that were to be spooled: how many were taken, from the first on, and how many older ones
    were dropped for them; ``is_full`` says that the rest found no room.
    """

    taken: int
    dropped: int
    is_full: bool


class Spool:
    """The folder of one config.

    Raises:
        ConfigError: the folder can't be made or written to, by its permissions or its path. A full disk is no reason.
    """

    def __init__(self, config: SpoolConfig) -> None:
        self.name = config.path
        self.path = Path(local_path(config.path, "$.spool.path")).absolute()
        self.max_bytes = config.max_bytes
        self.when_full: WhenFull = config.when_full
        self.sync = config.sync if config.sync >= SHORTEST_WINDOW else 0.0
        try:
            make_folder(self.path, 0o700)
            if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            if error.errno in _REFUSED:
                raise ConfigError(
                    f"the folder {config.path} can't be used: {error.strerror}; give one that this user may write to",
                    path="$.spool.path",
                ) from None

    def used(self) -> int:
        """Bytes that all brokers have in the folder."""
        return sum(_sizes(self.path))

    def lane(self, config: Any) -> LaneSpool:
        """Give the part of a sink, by its config, a struct; nothing is made before an event waits."""
        return LaneSpool(self, self.path / lane_folder(config), _description(config))


class SpooledSink(Struct):
    """What ``sink.json`` says: the sink's name, its config, and the folder in which relative paths of it mean what they
    say.
    """

    name: str
    folder: str
    sink: Raw


def lane_folder(config: Any) -> str:
    """Name the folder of a sink: the same for the same sink, however it is fed."""
    identity = {key: value for key, value in msgspec.to_builtins(config).items() if key not in _OPTIONS}
    digest = hashlib.sha256(msgspec.json.encode(identity, order="sorted")).hexdigest()[:12]
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", config.name).strip("-.")[:60]
    return f"{plain}-{digest}"


def _description(config: Any) -> bytes:
    return msgspec.json.encode(SpooledSink(config.name, os.getcwd(), Raw(msgspec.json.encode(config))))


class LaneSpool:
    """The part of a spool that belongs to one sink. One thread at a time; the caller sees to that.

    Attributes:
        own: segments of this lane, the oldest first.
        adopted: one that a dead broker left; there may be more of them.
        taken_over: events in all that were adopted.
        torn: bytes in all that a killed broker left of events without their end.
        dead: the dead letters.
    """

    def __init__(self, spool: Spool, folder: Path, description: bytes | None = None) -> None:
        self._spool = spool
        self._description = description
        self.folder = folder
        self.own: deque[Segment] = deque()
        self.adopted: Segment | None = None
        self.taken_over = 0
        self.torn = 0
        self.dead = DeadLetters(folder / "dead", self._make_room, self._prepare)

    @property
    def place(self) -> str:
        """The whole spool, as its config has it."""
        return self._spool.name

    @property
    def sync(self) -> float:
        """Seconds within which events are on disk that the sink has not taken; 0: before they are passed on."""
        return self._spool.sync

    @property
    def max_bytes(self) -> int:
        """The bytes that the whole spool may have."""
        return self._spool.max_bytes

    @property
    def blocks(self) -> bool:
        """Whether the stream is to wait when there is no room."""
        return self._spool.when_full == "block"

    @property
    def waiting(self) -> int:
        """Events that wait in segments of this process."""
        return sum(segment.waiting for segment in tuple(self.own)) + (self.adopted.waiting if self.adopted else 0)

    def append(self, bodies: Sequence[bytes], in_use: Segment | None) -> Appended:
        """Add events behind the last one.

        Args:
            in_use: a segment that a delivery is under way from; it is never dropped.

        Raises:
            OSError: nothing more can be written; ``taken`` of its attribute ``appended`` tells what was.
        """
        taken = dropped = 0
        limit = max(self._spool.max_bytes // _PARTS, 1)
        most = len(bodies)
        try:
            while taken < len(bodies):
                tail = self.own[-1] if self.own and self.own[-1] is not in_use else None
                begun = tail.size if tail is not None and tail.size < limit else len(Segment.head)
                count = size = 0
                while taken + count < len(bodies) and (not count or (count < most and begun + size < limit)):
                    size += len(bodies[taken + count]) + 1
                    count += 1
                room, lost = self._free(size + len(Segment.head), in_use)
                dropped += lost
                if not room:
                    return Appended(taken, dropped, True)
                if not self.own or self.own[-1] is not tail or tail is None or tail.size >= limit:
                    tail = self._create()
                    self.own.append(tail)
                try:
                    tail.append(bodies[taken : taken + count])
                except OSError as error:
                    if error.errno not in _NO_SPACE or count == 1 or size <= _LEAST_BYTES:
                        raise
                    most = count // 2  # a part of it may fit
                    continue
                taken += count
        except OSError as error:
            self._forget_empty()
            error.appended = Appended(taken, dropped, False)  # type: ignore[attr-defined]
            raise
        return Appended(taken, dropped, False)

    def put_first(self, bodies: Sequence[bytes], after: Segment | None = None) -> Segment | None:
        """Keep a batch that is under way in a segment of its own, before all others; None when there is no room.

        Args:
            after: the segment that the batch came from, if it was on disk already.

        Raises:
            OSError: it can't be written.
        """
        if not self._make_room(sum(map(len, bodies)) + len(bodies) + len(Segment.head)):
            return None
        segment = self._create(_name_before(after.path.stem) if after is not None else None)
        try:
            segment.append(bodies)
        except OSError:
            segment.remove()
            raise
        self.own.appendleft(segment)
        return segment

    def advance(self, segment: Segment, end: int, count: int) -> None:
        """Take it that a batch need not be delivered again; a segment of which nothing is left is deleted."""
        if end >= segment.size:
            self._remove(segment)
        else:
            segment.advance(end, count)

    def adopt(self) -> bool:
        """Take over the oldest segment that a dead broker left; False when there is none.

        Segments that can't be opened are passed over.
        """
        for path in sorted(self.folder.glob("*.jsonl")):
            try:
                segment = Segment.adopt(path)
            except OSError:
                continue
            if segment is None:
                continue
            if segment.waiting:
                self.adopted = segment
                self.taken_over += segment.waiting
                self.torn += segment.torn
                return True
            segment.remove()
        return False

    def set_aside(self, segment: Segment) -> None:
        """Let go of a segment that can't be read; its file stays."""
        segment.leave()
        self._take_out(segment)

    def release(self) -> int:
        """Let go of everything, for the next to adopt; give how many events are left."""
        waiting = self.waiting
        for segment in (*self.own, *([self.adopted] if self.adopted else ())):
            segment.leave() if segment.waiting else segment.remove()
        self.own.clear()
        self.adopted = None
        self.dead.leave()
        return waiting

    def _create(self, name: str | None = None) -> Segment:
        self._prepare()
        return Segment.create(self.folder, name)

    def _prepare(self) -> None:
        make_folder(self.folder, 0o700)
        description = self.folder / "sink.json"
        if self._description is not None and not _has(description, self._description):
            replace_file(description, self._description, 0o600, syncs_folder=False)

    def _make_room(self, size: int) -> bool:
        return self._spool.used() + size <= self._spool.max_bytes

    def _free(self, size: int, in_use: Segment | None) -> tuple[bool, int]:
        """Make room, by dropping what is oldest if that is the policy; tell whether there is, and what was dropped."""
        dropped = 0
        while not self._make_room(size):
            if self._spool.when_full != "drop_oldest":
                return False, dropped
            oldest = next((part for part in (self.adopted, *self.own) if part is not None and part is not in_use), None)
            if oldest is None and self.adopted is None and self.adopt():
                oldest = self.adopted
            if oldest is None:
                return False, dropped
            dropped += oldest.waiting
            self._remove(oldest)
        return True, dropped

    def _forget_empty(self) -> None:
        for segment in [segment for segment in self.own if not segment.waiting]:
            self._remove(segment)

    def _remove(self, segment: Segment) -> None:
        segment.remove()
        self._take_out(segment)

    def _take_out(self, segment: Segment) -> None:
        if segment is self.adopted:
            self.adopted = None
        else:
            with suppress(ValueError):
                self.own.remove(segment)


def _name_before(name: str) -> str:
    """Give a segment's name that sorts just before another one's."""
    stem, _, number = name.partition("-")
    return f"{stem}-{int(number or 0) + 1}"


def _sizes(folder: Path) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes(Path(entry.path))
                else:
                    with suppress(OSError):  # just removed
                        yield entry.stat(follow_symlinks=False).st_size
    except OSError:
        return


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False
