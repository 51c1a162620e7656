"""One file of an archive: hidden and locked while it is written, then visible with a manifest.

``date=YYYY-MM-DD/.<id>.jsonl.gz.part`` becomes ``date=YYYY-MM-DD/<id>.jsonl.gz`` with ``_manifest/<id>.json``. The
next writer finishes the files that a killed writer left.
"""

from __future__ import annotations

import glob
import hashlib
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from balog.common.storage.local_files import create_locked, lock, sync, sync_folder, write_all
from balog.singer.batch.compression import NO_LIMITS, decompress
from balog.singer.batch.dialects import BatchError

_ENDING = ".jsonl.gz"

MANIFESTS = "_manifest"
"""The folder in a topic's folder with a manifest per file; readers of events skip it."""


def _unpack(source: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in blocks of about 1 MiB, up to where it is truncated or damaged."""
    with suppress(BatchError):
        yield from decompress(source, "gzip", NO_LIMITS)


class Manifest(Struct, kw_only=True):
    """The description of a file: its path in the topic's folder, events and their times, compressed bytes, sha256."""

    file: str
    events: int = 0
    bytes: int = 0
    sha256: str = ""
    min_timestamp: datetime | None = None
    max_timestamp: datetime | None = None

    def add(self, events: int, first: datetime | None, last: datetime | None) -> None:
        """Count events with timestamps between ``first`` and ``last``."""
        self.events += events
        if first is not None and last is not None:
            self.min_timestamp = min(first, self.min_timestamp or first)
            self.max_timestamp = max(last, self.max_timestamp or last)


class Part:
    """A file that is being written in the folder of a topic."""

    def __init__(self, topic: Path, day: str, name: str, suffix: str = "part") -> None:
        self._gzip = zlib.compressobj(6, zlib.DEFLATED, 31)
        folder = topic / f"date={day}"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}{_ENDING}"
        self._hidden = folder / f".{self.path.name}.{suffix}"
        self._manifest = topic / MANIFESTS / f"{name}.json"
        # Another process may take an empty file for that of a killed writer, and remove it.
        descriptor = create_locked(self._hidden, os.O_WRONLY | os.O_TRUNC)
        self._file: IO[bytes] = open(descriptor, "wb", buffering=0)  # noqa: SIM115
        self._sha = hashlib.sha256()
        self._counted = Manifest(file=f"{folder.name}/{self.path.name}")
        self.size = 0
        self.began = time.monotonic()

    def append(self, data: bytes, events: int, first: datetime | None, last: datetime | None) -> None:
        """Write and sync complete lines. After a failure the file is truncated to its previous size."""
        stream = self._gzip.copy()  # kept only once its bytes are written
        chunk = stream.compress(data) + stream.flush(zlib.Z_SYNC_FLUSH)
        self._write(chunk)
        self._gzip = stream
        self._sha.update(chunk)
        self._counted.add(events, first, last)
        self.size += len(chunk)

    def finish(self) -> None:
        """Finish the file and make it visible. After a failure, more may be appended, or this be called again."""
        end = self._gzip.copy().flush(zlib.Z_FINISH)
        self._write(end)
        try:
            sha = self._sha.copy()
            sha.update(end)
            whole = replace(self._counted, bytes=self.size + len(end), sha256=sha.hexdigest())
            hidden = _write_hidden(self._manifest, whole)
            os.rename(self._hidden, self.path)
        except OSError:
            self._truncate()
            raise
        with suppress(OSError):  # the next writer makes it visible
            os.rename(hidden, self._manifest)
            sync_folder(self._manifest.parent)
        self._file.close()
        with suppress(OSError):  # it already has its name
            sync_folder(self.path.parent)

    def _write(self, chunk: bytes) -> None:
        try:
            write_all(self._file.fileno(), chunk)
            sync(self._file)
        except OSError:
            self._truncate()
            raise

    def _truncate(self) -> None:
        self._file.seek(self.size)
        self._file.truncate()

    def release(self) -> None:
        """Close the file; the next writer finishes it."""
        self._file.close()

    def discard(self) -> None:
        """Close and delete the file."""
        self._file.close()
        self._hidden.unlink()


def manifest_of(file: Path) -> Path:
    """Return the path of a finished file's manifest."""
    return file.parent.parent / MANIFESTS / f"{file.name.partition('.')[0]}.json"


def describe(file: Path) -> Path:
    """Return the path of a finished file's manifest, after creating it from the file if it is missing."""
    manifest_path = manifest_of(file)
    if manifest_path.exists():
        return manifest_path
    manifest = Manifest(file=f"{file.parent.name}/{file.name}", bytes=file.stat().st_size)
    with open(file, "rb") as source:
        for lines in _whole_lines(_unpack(source)):
            manifest.add(*_count(lines))
        source.seek(0)
        sha = hashlib.sha256()
        while block := source.read(1 << 20):
            sha.update(block)
    os.rename(_write_hidden(manifest_path, replace(manifest, sha256=sha.hexdigest())), manifest_path)
    return manifest_path


def mend(topic: Path) -> None:
    """Finish the files that killed writers left in a topic's folder, and no files of running writers."""
    for part in sorted(topic.glob(f"date=*/.*{_ENDING}.part")):  # no other compression is read
        _finish_orphan(topic, part)
    for hidden in topic.glob(f"{MANIFESTS}/.*.json"):
        _settle_manifest(topic, hidden)


def _settle_manifest(topic: Path, hidden: Path) -> None:
    """Make the manifest of a visible file visible; remove the manifest of a file that does not exist."""
    name = glob.escape(hidden.name[1:].removesuffix(".json"))
    if any(topic.glob(f"date=*/.{name}.*.part")):
        return  # its writer is running
    with suppress(FileNotFoundError):  # another process has just done so
        if any(topic.glob(f"date=*/{name}.*")):
            os.rename(hidden, hidden.with_name(hidden.name[1:]))
        else:
            hidden.unlink()


def _finish_orphan(topic: Path, hidden: Path) -> None:
    """Finish a killed writer's file with its complete lines; a running writer holds the lock."""
    try:
        source = open(hidden, "rb")  # noqa: SIM115
    except FileNotFoundError:
        return  # its writer has just finished it
    with source:
        if not lock(source, wait=False):
            return
        final = hidden.with_name(hidden.name.removeprefix(".").removesuffix(".part"))
        if not hidden.exists() or final.exists():
            hidden.unlink(missing_ok=True)  # the file is finished, but its writer was killed before it removed this one
            return
        day = hidden.parent.name.removeprefix("date=")
        # If this is killed, too, the next process starts over.
        part = Part(topic, day, final.name.removesuffix(_ENDING), suffix="mend")
        for lines in _whole_lines(_unpack(source)):
            part.append(lines, *_count(lines))
        if part.size:
            part.finish()
        else:
            part.discard()
        hidden.unlink()


class _Times(Struct):
    timestamp: datetime


class _Head(Struct):
    header: _Times


_head = msgspec.json.Decoder(_Head)


def _count(lines: bytes) -> tuple[int, datetime | None, datetime | None]:
    times = []
    events = lines.splitlines()
    for line in events:
        with suppress(msgspec.DecodeError):  # a line that is not an event counts, too
            times.append(_head.decode(line).header.timestamp)
    return len(events), min(times, default=None), max(times, default=None)


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        rest += block
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]


def _write_hidden(path: Path, manifest: Manifest) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    with open(hidden, "wb", buffering=0) as file:
        write_all(file.fileno(), msgspec.json.encode(manifest) + b"\n")
        sync(file)
    return hidden
