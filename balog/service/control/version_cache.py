"""A local copy of the applied version, with which a service starts while the version store is unreachable."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from balog.common.errors import ConfigError
from balog.common.storage import StorageError, open_storage
from balog.service.control.store import DocumentVersion
from balog.topics import local_folder

_MAX_BYTES = 8 << 20


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
            data = self._storage.read(self._name, _MAX_BYTES)
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
