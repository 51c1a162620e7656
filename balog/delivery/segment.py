"""Files of lines that belong to one process: the segments of a spool, and dead letters.

The owner locks its file (flock). When ``append`` returns, its lines are on disk (fsync); if it fails, none of them is.
After the owner released the file or was killed, another process may adopt it. An incomplete last line is cut off then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from balog.common.storage.local_files import create_locked, is_at, lock, sync, sync_folder, unlock
from balog.event import new_id

_CHUNK = 1 << 18
_OLD = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_File = TypeVar("_File", bound="LinesFile")


class LinesFile:
    """A file of lines that this process owns until it releases it.

    Attributes:
        path: the file; only its owner can read it (0600).
        size: bytes of the header and all complete lines.
    """

    head = b""

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self.size = size

    @classmethod
    def create(cls: type[_File], folder: Path, name: str | None = None) -> _File:
        """Create a file. Without a name it is named after the current time.

        Raises:
            OSError: the file can't be written, for example because the disk is full.
        """
        path = folder / f"{name or new_id()}.jsonl"
        descriptor = create_locked(path, os.O_RDWR | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            _write_at(descriptor, cls.head, 0)
            sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            with suppress(OSError):
                os.close(descriptor)
            raise
        return cls(path, descriptor, len(cls.head))

    @classmethod
    def adopt(cls: type[_File], path: Path) -> _File | None:
        """Become the owner of a file. Return None if another process owns it or it is gone.

        Raises:
            OSError: the file can't be read or written.
        """
        try:
            descriptor = os.open(path, _OLD)
        except FileNotFoundError:
            return None
        try:
            if not lock(descriptor, wait=False) or not is_at(path, descriptor):
                os.close(descriptor)
                return None
            file_size = os.fstat(descriptor).st_size
            size = _end_of_lines(descriptor, file_size)
            if size < file_size:
                os.ftruncate(descriptor, size)
            return cls(path, descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def inspect(cls: type[_File], path: Path) -> tuple[_File, bool] | None:
        """Open a file only to read it.

        Returns:
            The file, and whether a process owns it. None if it is gone.

        Raises:
            OSError: the file can't be read.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            is_owned = not lock(descriptor, wait=False, shared=True)
            if not is_owned:
                unlock(descriptor)
            return cls(path, descriptor, _end_of_lines(descriptor, os.fstat(descriptor).st_size)), is_owned
        except BaseException:
            os.close(descriptor)
            raise

    def append(self, lines: Sequence[bytes]) -> None:
        """Add lines, which come without their newlines. They are on disk when this returns.

        Raises:
            OSError: none of the lines was added.
        """
        end = self.size
        try:
            for part in _joined(lines):
                _write_at(self._descriptor, part, end)
                end += len(part)
            sync(self._descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise
        self.size = end

    def read_from(self, at: int, count: int, size: int) -> tuple[list[bytes], int]:
        """Read lines from offset ``at`` on: at most ``count``, and about ``size`` bytes.

        Returns:
            The lines without newlines, and the offset of the next one.

        Raises:
            OSError: the lines can't be read.
        """
        lines: list[bytes] = []
        read, end, taken, rest = at, at, 0, b""
        while read < self.size and len(lines) < count and taken < size:
            chunk = os.pread(self._descriptor, min(_CHUNK, self.size - read), read)
            if not chunk:
                raise OSError(f"{self.path} has become shorter")
            read += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                if len(lines) == count or taken >= size:
                    break
                lines.append(line)
                end += len(line) + 1
                taken += len(line)
        return lines, end

    def release(self) -> None:
        """Close the file; another process may adopt it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Delete the file."""
        with suppress(OSError):
            os.unlink(self.path)
        self.release()


class Segment(LinesFile):
    """A part of a spool: events, one per line, and how far they have been delivered.

    The first line is a header with the offset of the first event that waits.

    Attributes:
        position: the offset of the first event that waits.
        waiting: how many events wait.
    """

    head = b'{"balog_spool": 1, "position": "%016d"}\n' % 51
    _AT = head.index(b"0000")
    _HEAD = re.compile(rb'\{"balog_spool": 1, "position": "(\d{16})"\}\n')

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        super().__init__(path, descriptor, size)
        match = self._HEAD.match(os.pread(descriptor, len(self.head), 0))
        position = int(match[1]) if match else 0
        # If the disk lost or damaged the header, the file is read from its start.
        self._has_head = match is not None
        self.position = position if len(self.head) <= position <= size else (len(self.head) if match else 0)
        self.waiting = self._count()

    def append(self, lines: Sequence[bytes]) -> None:
        """Add events; see ``LinesFile.append``."""
        super().append(lines)
        self.waiting += len(lines)

    def read(self, count: int, size: int) -> tuple[list[bytes], int]:
        """Read the next events that wait; see ``read_from``. They wait until ``advance`` is called."""
        return self.read_from(self.position, count, size)

    def advance(self, end: int, count: int) -> None:
        """Mark the next ``count`` events, up to offset ``end``, as done."""
        self.position = end
        self.waiting -= count
        if self._has_head:
            with suppress(OSError):  # at worst a batch is delivered twice
                os.pwrite(self._descriptor, b"%016d" % end, self._AT)
                sync(self._descriptor)

    def _count(self) -> int:
        at, lines = self.position, 0
        while at < self.size:
            chunk = os.pread(self._descriptor, min(_CHUNK, self.size - at), at)
            if not chunk:
                break
            lines += chunk.count(b"\n")
            at += len(chunk)
        return lines


class SpoolRange(NamedTuple):
    """The place of a batch on disk: the next ``events`` events of a segment, up to the offset ``end``."""

    segment: Segment
    end: int
    events: int


def _joined(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines in blocks of about 256 KiB, so that a large batch is not copied as a whole."""
    part: list[bytes] = []
    size = 0
    for line in lines:
        part += (line, b"\n")
        size += len(line)
        if size >= _CHUNK:
            yield b"".join(part)
            part, size = [], 0
    if part:
        yield b"".join(part)


def _write_at(descriptor: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def _end_of_lines(descriptor: int, size: int) -> int:
    """Return the offset after the last complete line."""
    end = size
    while end:
        begin = max(0, end - _CHUNK)
        newline = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0
