"""One file of a store under way: hidden and locked while it is written, visible whole, its manifest beside it.

``date=YYYY-MM-DD/.<id>.jsonl.gz.part`` becomes ``date=YYYY-MM-DD/<id>.jsonl.gz`` with ``_manifest/<id>.json``. What a
killed writer left is finished by the next.
"""

from __future__ import annotations

import glob
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from balog.sinks.store_codecs import CODECS, codec_of
from balog.storage.local_files import create_locked, lock, sync, sync_folder

__all__ = ["MANIFESTS", "Manifest", "Part", "describe", "manifest_of", "mend"]

MANIFESTS = "_manifest"
"""The folder of a topic that holds a manifest for each of its files; readers of events pass over it."""


class Manifest(Struct, kw_only=True):
    """What is in a file: its path below the topic's folder, events and their times, compressed bytes and sha256."""

    file: str
    events: int = 0
    bytes: int = 0
    sha256: str = ""
    min_timestamp: datetime | None = None
    max_timestamp: datetime | None = None

    def add(self, events: int, first: datetime | None, last: datetime | None) -> None:
        """Count events whose times lie between these two."""
        self.events += events
        if first is not None and last is not None:
            self.min_timestamp = min(first, self.min_timestamp or first)
            self.max_timestamp = max(last, self.max_timestamp or last)


class Part:
    """A file under way in the folder of a topic."""

    def __init__(self, topic: Path, day: str, name: str, compression: str, suffix: str = "part") -> None:
        self._codec = CODECS[compression]()
        folder = topic / f"date={day}"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}{self._codec.ending}"
        self._hidden = folder / f".{self.path.name}.{suffix}"
        self._manifest = topic / MANIFESTS / f"{name}.json"
        # A process that mends the folder may take an empty file for that of a dead writer, and remove it.
        descriptor = create_locked(self._hidden, os.O_WRONLY | os.O_TRUNC)
        self._file: IO[bytes] = open(descriptor, "wb", buffering=0)  # noqa: SIM115
        self._sha = hashlib.sha256()
        self._counted = Manifest(file=f"{folder.name}/{self.path.name}")
        self.size = 0
        self.began = time.monotonic()

    def append(self, data: bytes, events: int, first: datetime | None, last: datetime | None) -> None:
        """Write and sync whole lines; after a failure the file is cut back to what was whole before."""
        chunk = self._codec.pack(data)
        self._write(chunk)
        self._codec.keep()
        self._sha.update(chunk)
        self._counted.add(events, first, last)
        self.size += len(chunk)

    def finish(self) -> None:
        """End the file and make it visible; after a failure it can be tried again, or more appended."""
        end = self._codec.end()
        self._write(end)
        try:
            sha = self._sha.copy()
            sha.update(end)
            self._counted.bytes, self._counted.sha256 = self.size + len(end), sha.hexdigest()
            hidden = _write_hidden(self._manifest, self._counted)
            os.rename(self._hidden, self.path)
        except OSError:
            self._cut_back()
            raise
        with suppress(OSError):  # the next to open makes it visible
            os.rename(hidden, self._manifest)
            sync_folder(self._manifest.parent)
        self._file.close()
        with suppress(OSError):  # it is there under its name, and nothing more can be done for it
            sync_folder(self.path.parent)

    def _write(self, chunk: bytes) -> None:
        try:
            _write_all(self._file, chunk)
            sync(self._file)
        except OSError:
            self._cut_back()
            raise

    def _cut_back(self) -> None:
        self._file.seek(self.size)
        self._file.truncate()

    def leave(self) -> None:
        """Leave the file to the next to come."""
        self._file.close()

    def discard(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        self._hidden.unlink()


def manifest_of(file: Path) -> Path:
    """Give the place of a finished file's manifest."""
    return file.parent.parent / MANIFESTS / f"{file.name.partition('.')[0]}.json"


def describe(file: Path) -> Path:
    """Give a finished file's manifest, made from the file where there is none."""
    place = manifest_of(file)
    if place.exists():
        return place
    found = Manifest(file=f"{file.parent.name}/{file.name}", bytes=file.stat().st_size)
    with open(file, "rb") as source:
        for lines in _whole_lines(codec_of(file).unpack(source)):
            found.add(*_count(lines))
        source.seek(0)
        sha = hashlib.sha256()
        while block := source.read(1 << 20):
            sha.update(block)
    found.sha256 = sha.hexdigest()
    os.rename(_write_hidden(place, found), place)
    return place


def mend(topic: Path) -> None:
    """Finish what dead writers left in a topic's folder; the files of live ones are let be."""
    for part in sorted(topic.glob("date=*/.*.part")):
        if codec_of(part) is not None:
            _finish_orphan(topic, part)
    for hidden in topic.glob(f"{MANIFESTS}/.*.json"):
        _settle_manifest(topic, hidden)


def _settle_manifest(topic: Path, hidden: Path) -> None:
    """Make visible the manifest of a file that is; remove that of a file that will never be."""
    name = glob.escape(hidden.name[1:].removesuffix(".json"))
    if any(topic.glob(f"date=*/.{name}.*.part")):
        return  # its writer is alive
    with suppress(FileNotFoundError):  # another has just done it
        if any(topic.glob(f"date=*/{name}.*")):
            os.rename(hidden, hidden.with_name(hidden.name[1:]))
        else:
            hidden.unlink()


def _finish_orphan(topic: Path, hidden: Path) -> None:
    """Make a file of the whole lines that a dead writer left; a live writer holds the lock."""
    try:
        source = open(hidden, "rb")  # noqa: SIM115
    except FileNotFoundError:
        return  # its writer has just finished it
    with source:
        if not lock(source, wait=False):
            return
        final = hidden.with_name(hidden.name.removeprefix(".").removesuffix(".part"))
        if not hidden.exists() or final.exists():
            hidden.unlink(missing_ok=True)  # finished, but its writer died before it could remove this
            return
        codec = codec_of(final)
        day = hidden.parent.name.removeprefix("date=")
        # A half-mended file is begun anew by the next to come.
        part = Part(topic, day, final.name.removesuffix(codec.ending), codec.name, suffix="mend")
        for lines in _whole_lines(codec.unpack(source)):
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
    found = lines.splitlines()
    for line in found:
        with suppress(msgspec.DecodeError):  # a line that is no event is counted all the same
            times.append(_head.decode(line).header.timestamp)
    return len(found), min(times, default=None), max(times, default=None)


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        rest += block
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]


def _write_hidden(place: Path, manifest: Manifest) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    hidden = place.with_name(f".{place.name}")
    with open(hidden, "wb", buffering=0) as file:
        _write_all(file, msgspec.json.encode(manifest) + b"\n")
        sync(file)
    return hidden


def _write_all(file: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
