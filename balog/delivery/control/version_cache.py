"""The version that was applied last, kept on this machine: a service starts with it while its place can't be read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from balog.delivery.control.store import DocumentVersion
from balog.errors import ConfigError
from balog.storage import StorageError, open_storage
from balog.topics import local_folder

__all__ = ["VersionCache", "open_version_cache"]

_MAX_BYTES = 8 << 20


class _CachedVersion(Struct, frozen=True):
    entry: DocumentVersion
    document: Raw


class VersionCache:
    """A file with one version; whoever applies a version writes it anew.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._storage = open_storage(str(path.parent))
        self._name = path.name

    def read(self) -> tuple[DocumentVersion, bytes] | None:
        """Return the version and its document; None where there is none that can be read."""
        try:
            data = self._storage.read(self._name, _MAX_BYTES)
            cached = msgspec.json.decode(data or b"", type=_CachedVersion)
        except (StorageError, msgspec.DecodeError):
            return None
        return cached.entry, bytes(cached.document)

    def write(self, entry: DocumentVersion, document: bytes) -> None:
        """Keep a version instead of the one before.

        Raises:
            StorageError: it can't be written.
        """
        self._storage.write(msgspec.json.encode(_CachedVersion(entry, Raw(document))), self._name)


def open_version_cache(control: str, *topics_urls: str | None) -> VersionCache | None:
    """Return where a place's version is kept: in the first of the homes of topics that is on this disk, hidden.

    Services that share the home and the place share it, too. None where no home is on this disk.
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
