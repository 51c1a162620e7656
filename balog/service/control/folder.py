"""A version store in a folder or an object store. Creating a version's file reserves its number.

    documents/SHA.json      a document, canonical
    log/00000012.json       an entry
    status/SERVICE.json     the last report of a service

A document is written before the entry that refers to it. A process killed in between leaves at most an unreferenced
document.

A service keeps a local copy of the version that it applied last, to start while the store is unreachable.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import msgspec
from msgspec import Raw, Struct

from balog.common.errors import ConfigError
from balog.common.storage import StorageError, open_storage
from balog.service.control.store import (
    Action,
    ControlError,
    DocumentVersion,
    ServiceStatus,
    VersionConflict,
    canonical,
    sha_of,
)
from balog.topics import local_folder

_MAX_BYTES = 4 << 20
_MAX_CACHED = 8 << 20
_MAX_KNOWN = 1000
_MAX_NAME = 200  # file names have at most 255 bytes, and a character may be quoted as 12
_EMPTY = b"{}"  # the document of version 0
_SHA = re.compile("[0-9a-f]{64}")
_REPORTS_KEPT = timedelta(days=1)


class FolderControl:
    """A store of the control document's versions, to which services ``report``. Thread-safe.

    Every method raises ``StorageError`` or ``ControlError`` if the store is unreachable or refuses.

    Args:
        path: a folder, or the URL of an object store, with its ``options``.

    Attributes:
        place: the store's location, for people.
    """

    def __init__(self, path: str, options: Mapping[str, Any] | None = None) -> None:
        self._storage = open_storage(path, options, "control")
        self.place = self._storage.url
        self._lock = threading.RLock()  # a storage is not thread-safe
        self._known = 0  # versions are never deleted, so the search for the head starts here
        self._entries: dict[int, DocumentVersion] = {}  # versions are immutable

    def head(self) -> DocumentVersion | None:
        """Return the newest version; None if there is none."""
        with self._lock:
            if self._known == 0:
                self._known = self._list_highest()
            entry = self._read(self._known) if self._known else None
            while (following := self._read(self._known + 1)) is not None:
                entry, self._known = following, self._known + 1
            if entry is None and self._known:
                raise ControlError(f"{self.place}: version {self._known} was there and is gone; restore log/")
            return entry

    def entry(self, number: int) -> DocumentVersion:
        """Return one version.

        Raises:
            ControlError: the version does not exist.
        """
        with self._lock:
            version = self._read(number) if number > 0 else None
        if version is None:
            head = self.head()
            raise ControlError(
                f"{self.place}: there is no version {number}; the newest is {head.number if head else 0}"
            )
        return version

    def entries(self, limit: int = 100) -> list[DocumentVersion]:
        """Return versions, the newest first."""
        head = self.head()
        newest = head.number if head else 0
        return [self.entry(number) for number in range(newest, max(newest - limit, 0), -1)]

    def document(self, sha: str) -> bytes:
        """Return the canonical document with a hash.

        Raises:
            ControlError: the document is missing, or does not match its hash.
        """
        name = f"documents/{sha}.json"
        if not _SHA.fullmatch(sha):
            raise ControlError(f"{self.place}: there is no document {sha!r:.80}")
        with self._lock:
            data = self._storage.read(name, _MAX_BYTES)
        if data is None or sha_of(data) != sha:
            what = "is missing" if data is None else "does not match its name"
            raise ControlError(f"{self.place}/{name}: the document {what}")
        return data

    def push(self, data: bytes, *, who: str, message: str, base: int | None = None) -> DocumentVersion:
        """Add a version. If the document equals the newest one, no version is added.

        Args:
            data: the document as JSON; not validated here, see ``check``.
            base: the number that the author expects to be the newest; None skips the check.

        Raises:
            VersionConflict: another version is the newest.
        """
        document = canonical(data)
        head = self.head()
        known = _check_base(head, base)
        sha = sha_of(document)
        if head is not None and head.sha == sha:
            return head
        with self._lock:
            self._storage.write(document, f"documents/{sha}.json")
        return self._append(known, sha, who, message, "push", None)

    def rollback(
        self, number: int | None = None, *, who: str, message: str, base: int | None = None
    ) -> DocumentVersion:
        """Restore an older version's document as a new version.

        Args:
            number: the version, 0 for the empty document; None for the last version with another document.

        Raises:
            ControlError: the version does not exist.
            VersionConflict: see ``push``.
        """
        head = self.head()
        known = _check_base(head, base)
        if head is None:
            raise ControlError(f"{self.place}: there is no version yet")
        if number == 0:
            origin, sha = 0, sha_of(_EMPTY)
            with self._lock:
                self._storage.write(_EMPTY, f"documents/{sha}.json")
        else:
            older = self._previous(head) if number is None else self.entry(number)
            origin, sha = older.number, older.sha
            self.document(sha)
        if sha == head.sha:
            return head
        return self._append(known, sha, who, message, "rollback", origin)

    def services(self) -> list[ServiceStatus]:
        """Return the last report of each service that reported within a day, by name."""
        since = datetime.now(timezone.utc) - _REPORTS_KEPT
        statuses = []
        with self._lock:
            for name in self._names("status"):
                data = self._storage.read(name, _MAX_BYTES)
                try:
                    status = msgspec.json.decode(data or b"", type=ServiceStatus)
                except msgspec.DecodeError:
                    continue  # written by a newer release, or edited
                if status.when >= since:
                    statuses.append(status)
        return sorted(statuses, key=lambda status: status.service)

    def report(self, status: ServiceStatus) -> None:
        """Replace the report of a service."""
        with self._lock:
            self._storage.write(msgspec.json.encode(status), _report(status.service))

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._storage.close()

    def _append(
        self, base: int, sha: str, who: str, message: str, action: Action, origin: int | None
    ) -> DocumentVersion:
        entry = DocumentVersion(
            number=base + 1,
            sha=sha,
            who=who[:200],
            when=datetime.now(timezone.utc),
            message=message[:2000],
            action=action,
            origin=origin,
            nonce=uuid4().hex,
        )
        with self._lock:
            if not self._storage.create(msgspec.json.encode(entry), _name(entry.number)):
                there = self._read(entry.number)
                if (
                    there is None or there.nonce != entry.nonce
                ):  # else the request was retried, and the first attempt won
                    head = self.head()
                    raise VersionConflict(head.number if head else entry.number, base)
        return entry

    def _previous(self, head: DocumentVersion) -> DocumentVersion:
        for number in range(head.number - 1, 0, -1):
            entry = self.entry(number)
            if entry.sha != head.sha:
                return entry
        raise ControlError(f"{self.place}: there is no version before {head.number} with another document")

    def _read(self, number: int) -> DocumentVersion | None:
        if (known := self._entries.get(number)) is not None:
            return known
        data = self._storage.read(_name(number), _MAX_BYTES)
        if data is None:
            return None
        try:
            entry = msgspec.json.decode(data, type=DocumentVersion)
        except msgspec.DecodeError as error:
            raise ControlError(f"{self.place}/{_name(number)}: not an entry of the log: {error}") from None
        if len(self._entries) >= _MAX_KNOWN:
            self._entries.clear()
        self._entries[number] = entry
        return entry

    def _list_highest(self) -> int:
        """Return the highest number in the listing; only the first access lists the store."""
        numbers = (name.removeprefix("log/").removesuffix(".json") for name in self._names("log"))
        return max((int(number) for number in numbers if number.isdigit()), default=0)

    def _names(self, folder: str) -> list[str]:
        try:
            return [
                name for name, _ in self._storage.files(lambda name: name == folder) if name.startswith(folder + "/")
            ]
        except StorageError:
            # A store without files does not exist yet; an unreachable one raises again.
            if self._storage.size(_name(1)) is None:
                return []
            raise


def _check_base(head: DocumentVersion | None, base: int | None) -> int:
    newest = head.number if head else 0
    if base is not None and base != newest:
        raise VersionConflict(newest, base)
    return newest


def _report(service: str) -> str:
    name = quote(service, safe=" ")
    return f"status/{name if len(name) <= _MAX_NAME else sha_of(service.encode())}.json"


def _name(number: int) -> str:
    return f"log/{number:08d}.json"


class _CachedVersion(Struct, frozen=True):
    entry: DocumentVersion
    document: Raw


class VersionCache:
    """A file with the version that was applied last.

    Args:
        path: path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._storage = open_storage(str(path.parent))
        self._name = path.name

    def read(self) -> tuple[DocumentVersion, bytes] | None:
        """Return the version and its document; None if the file is missing or unreadable."""
        try:
            data = self._storage.read(self._name, _MAX_CACHED)
            cached = msgspec.json.decode(data or b"", type=_CachedVersion)
        except (StorageError, msgspec.DecodeError):
            return None
        return cached.entry, bytes(cached.document)

    def write(self, entry: DocumentVersion, document: bytes) -> None:
        """Replace the cached version.

        Raises:
            StorageError: the file cannot be written.
        """
        self._storage.write(msgspec.json.encode(_CachedVersion(entry, Raw(document))), self._name)


def open_version_cache(control: str, *topics_urls: str | None) -> VersionCache | None:
    """Return the cache of a version store: a hidden file in the first topics folder that is on this disk.

    Services with the same topics and version store share the cache. None if no topics are on this disk.
    """
    for url in topics_urls:
        try:
            folder = local_folder(url or "")
            if folder is not None:
                name = hashlib.sha256(control.encode()).hexdigest()[:16]
                return VersionCache(folder / ".control" / f"version-{name}.json")
        except (ConfigError, RuntimeError):
            return None
    return None
