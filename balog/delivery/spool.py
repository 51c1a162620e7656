"""The spool: events on disk that wait for sinks.

    SPOOL/
      statsd-localhost-8125-1f0c9a31/    a folder for each sink, named after the sink and a hash of its config
        sink.json                        the sink's config; it refers to secrets and holds none
        <id>.jsonl                       segments: the events, in the order of their names
        dead/<id>.jsonl                  dead letters

Several brokers may share a spool: each segment belongs to the process that has it open. The segments of a dead broker
are adopted by the next one with the same spool and sink, or sent by ``balog replay``. Only the owner may read the files
(0700, 0600).
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from balog.common.errors import ConfigError
from balog.common.local_path import local_path
from balog.common.storage.local_files import make_folder, replace_file
from balog.delivery.dead_letters import SinkDeadLetters
from balog.delivery.segment import Segment
from balog.delivery.sync_window import SHORTEST_WINDOW

_OPTIONS = ("where", "batch", "retry")  # they do not identify a sink
_PARTS = 16
_FULL = (errno.ENOSPC, errno.EDQUOT)

FULL = "full"
"""The error of a write for which the spool has no room."""


class SpoolConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The folder of a spool; ``balog replay`` sends the events that are left in it."""

    path: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1000,
            description="The folder; made when it is not there. Brokers may share it.",
            examples=["spool"],
        ),
    ]
    max_bytes: Annotated[
        int,
        Meta(
            ge=1 << 16,
            description="Bytes of all files in the folder, dead letters too, at most; more events are dropped.",
        ),
    ] = 1 << 30
    sync: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds within which an event is on disk that its sink has not taken. 0, as anything below "
            "0.1: before its line passes on; every event is written then.",
        ),
    ] = 1.0


class Spool:
    """The folder that a config names.

    Attributes:
        name: its path, as configured.
        max_bytes: bytes of all files at most.
        sync: seconds within which events that a sink has not taken are on disk; 0 for before ``put`` returns.

    Raises:
        ConfigError: the folder can't be created or written to because of its permissions or its path. A full disk is
            not an error.
    """

    def __init__(self, config: SpoolConfig) -> None:
        self.name = config.path
        self.path = Path(local_path(config.path, "$.spool.path")).absolute()
        self.max_bytes = config.max_bytes
        self.sync = config.sync if config.sync >= SHORTEST_WINDOW else 0.0
        try:
            make_folder(self.path, 0o700)
            if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            if error.errno not in _FULL:
                raise ConfigError(
                    f"the folder {config.path} can't be used: {error.strerror}; give one that this user may write to",
                    path="$.spool.path",
                ) from None

    def used(self) -> int:
        """Return the bytes of all files in the folder, those of other brokers included."""
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with suppress(OSError):  # just removed
                    total += os.lstat(os.path.join(folder, name)).st_size
        return total

    def for_sink(self, config: Any) -> SinkSpool:
        """Return the part of a sink. Its folder is created when the first event waits."""
        return SinkSpool(self, self.path / sink_folder(config), _description(config))


class SpooledSink(Struct):
    """The content of ``sink.json``.

    Attributes:
        name: the sink's name.
        folder: the folder in which relative paths of the config begin.
        sink: the config.
    """

    name: str
    folder: str
    sink: Raw


def sink_folder(config: Any) -> str:
    """Return the name of a sink's folder. It does not depend on ``where``, ``batch`` and ``retry``."""
    identity = {key: value for key, value in msgspec.to_builtins(config).items() if key not in _OPTIONS}
    digest = hashlib.sha256(msgspec.json.encode(identity, order="sorted")).hexdigest()[:12]
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", config.name).strip("-.")[:60]
    return f"{plain}-{digest}"


def _description(config: Any) -> bytes:
    return msgspec.json.encode(SpooledSink(config.name, os.getcwd(), Raw(msgspec.json.encode(config))))


class SinkSpool:
    """The part of a spool that belongs to one sink. Not thread-safe.

    Attributes:
        own: the segments that this process created, the oldest first.
        spool: the whole spool.
        adopted: the segment of a dead broker that is being delivered; there may be more on disk.
        adopted_events: events that were adopted so far.
        dead: the dead letters.
    """

    def __init__(self, spool: Spool, folder: Path, description: bytes | None = None) -> None:
        self.spool = spool
        self._description = description
        self.folder = folder
        self.own: deque[Segment] = deque()
        self.adopted: Segment | None = None
        self.adopted_events = 0
        self.dead = SinkDeadLetters(folder / "dead", self._has_room, self._prepare)

    @property
    def waiting(self) -> int:
        """How many events wait in the segments that this process holds."""
        return sum(segment.waiting for segment in tuple(self.own)) + (self.adopted.waiting if self.adopted else 0)

    def own_events(self) -> tuple[int, int]:
        """Return how many events wait in the segments that this process created, and their bytes."""
        segments = tuple(self.own)
        return sum(each.waiting for each in segments), sum(each.size - each.position for each in segments)

    def append(self, bodies: Sequence[bytes], in_use: Segment | None) -> tuple[int, str]:
        """Add events after the last one.

        Args:
            in_use: the segment of the batch in flight; nothing is added to it.

        Returns:
            How many of the events are on disk, from the first one on, and why not the others: ``FULL``, the disk's
            error, or "" if all are.
        """
        taken = 0
        limit = max(self.spool.max_bytes // _PARTS, 1)
        try:
            while taken < len(bodies):
                tail = self.own[-1] if self.own and self.own[-1] is not in_use else None
                if tail is not None and tail.size >= limit:
                    tail = None
                begun = tail.size if tail is not None else len(Segment.head)
                count = size = 0
                while taken + count < len(bodies) and (not count or begun + size < limit):
                    size += len(bodies[taken + count]) + 1
                    count += 1
                if not self._has_room(size + len(Segment.head)):
                    return taken, FULL
                if tail is None:
                    tail = self._create()
                    self.own.append(tail)
                tail.append(bodies[taken : taken + count])
                taken += count
        except OSError as error:
            for segment in [segment for segment in self.own if not segment.waiting]:
                self._remove(segment)
            return taken, error.strerror or str(error)
        return taken, ""

    def put_first(self, bodies: Sequence[bytes], after: Segment | None = None) -> Segment | None:
        """Write a batch in flight to a segment of its own, before all others.

        Args:
            after: the segment that the batch came from, if it is already on disk.

        Returns:
            The segment, or None if there is no room.

        Raises:
            OSError: the segment can't be written.
        """
        if not self._has_room(sum(map(len, bodies)) + len(bodies) + len(Segment.head)):
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
        """Mark the next ``count`` events of a segment, up to offset ``end``, as done. Delete a segment that is done."""
        if end >= segment.size:
            self._remove(segment)
        else:
            segment.advance(end, count)

    def adopt(self) -> bool:
        """Adopt the oldest segment that a dead broker left. Return False if there is none.

        Segments that can't be opened are skipped.
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
                self.adopted_events += segment.waiting
                return True
            segment.remove()
        return False

    def set_aside(self, segment: Segment) -> None:
        """Release a segment that can't be read, and keep its file."""
        if segment is self.adopted:
            self.adopted_events -= segment.waiting
        segment.release()
        self._take_out(segment)

    def release(self) -> int:
        """Release all files, for the next process to adopt. Return how many events are left."""
        waiting = self.waiting
        for segment in (*self.own, *([self.adopted] if self.adopted else ())):
            segment.release() if segment.waiting else segment.remove()
        self.own.clear()
        self.adopted = None
        self.dead.release()
        return waiting

    def _create(self, name: str | None = None) -> Segment:
        self._prepare()
        return Segment.create(self.folder, name)

    def _prepare(self) -> None:
        make_folder(self.folder, 0o700)
        description = self.folder / "sink.json"
        if self._description is not None and not _has(description, self._description):
            replace_file(description, self._description, 0o600, syncs_folder=False)

    def _has_room(self, size: int) -> bool:
        return self.spool.used() + size <= self.spool.max_bytes

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
    """Return a segment name that sorts just before another one."""
    stem, _, number = name.partition("-")
    return f"{stem}-{int(number or 0) + 1}"


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False
