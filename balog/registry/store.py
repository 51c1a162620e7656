"""Stores of schemas: a folder, an object store, or the package itself, as ``TYPE/VERSION.json`` or ``.proto``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple, Protocol

from balog.common.storage import StorageError, open_storage
from balog.common.storage.remote import RemoteStorage
from balog.registry.names import FileName, is_type, parse_file_name
from balog.registry.schema import MAX_SCHEMA_BYTES, InvalidSchemaError, Schema


class StoredVersion(NamedTuple):
    """A version in a store: its file name, and a mark that changes when the file is edited."""

    name: FileName
    mark: str = ""


Listing = dict[str, dict[str, StoredVersion]]
"""The stored versions by type and version."""


class SchemaStore(Protocol):
    """Stores schemas. Thread-safe.

    Every method raises ``StorageError`` if the store is unreachable.

    Attributes:
        place: the store's location, for people.
    """

    place: str

    def listing(self) -> Listing:
        """Return all stored versions."""

    def read(self, type: str, kept: StoredVersion) -> bytes | None:
        """Return a version's document; None if it has been deleted."""

    def create(self, schema: Schema) -> bool:
        """Store a version. Return False if the version exists; then it stays unchanged.

        Of several concurrent calls for one version, at most one returns True.
        """

    def close(self) -> None:
        """Close the connection, if there is one."""


class FolderStore:
    """A ``SchemaStore`` in a folder or at a URL that ``balog.common.storage`` opens. Files of other names are ignored.

    Raises:
        ConfigError, MissingExtraError: see ``open_storage``.
    """

    def __init__(self, path: str, options: Mapping[str, Any] | None = None) -> None:
        self.place = path
        self._storage = open_storage(path, options, "registry")
        self._lock = threading.Lock()  # a storage is for one thread at a time

    def listing(self) -> Listing:
        """See ``SchemaStore``. A folder that does not exist yet is empty."""
        listing: Listing = {}
        with self._lock:
            for path, mark in self._files():
                type, _, last = path.partition("/")
                name = parse_file_name(last)
                # If a version exists in two forms, the first in alphabetical order counts: json before proto.
                if name is not None and is_type(type):
                    listing.setdefault(type, {}).setdefault(name.version, StoredVersion(name, mark))
        return listing

    def read(self, type: str, kept: StoredVersion) -> bytes | None:
        """See ``SchemaStore``."""
        with self._lock:
            return self._storage.read(f"{type}/{kept.name}", MAX_SCHEMA_BYTES)

    def create(self, schema: Schema) -> bool:
        """See ``SchemaStore``."""
        name = str(FileName(schema.version, schema.form, schema.message))
        with self._lock:
            if not self._storage.create(schema.source, f"{schema.type}/{name}"):
                return False
            # Two forms of one version are two files, so two writers can both succeed. A writer that finds the file of
            # another removes its own. Two at once may both do so; then nothing is stored, and a retry settles it.
            files = self._files(schema.type)
            if any(self._is_version_of(path, schema) and path != f"{schema.type}/{name}" for path, _ in files):
                self._storage.remove(f"{schema.type}/{name}")
                return False
            return True

    def close(self) -> None:
        """See ``SchemaStore``."""
        with self._lock:
            self._storage.close()

    def _files(self, type: str = "") -> list[tuple[str, str]]:
        """Return the files of a type, or of all types, each with its mark: size and modification time."""
        if isinstance(self._storage, RemoteStorage):  # one request for a thousand files, and not one for each type
            prefix = f"{type}/" if type else ""
            return sorted(
                (prefix + entry.name, f"{entry.size}-{entry.modified}") for entry in self._storage.entries(type) or ()
            )
        try:
            return self._local_files(type)
        except StorageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            # A file that is deleted meanwhile does not empty the folder.
            return [] if self._storage.size() is None else self._local_files(type)

    def _local_files(self, type: str) -> list[tuple[str, str]]:
        files = sorted(self._storage.files(lambda folder: folder == type if type else is_type(folder)))
        return [(path, f"{size}-{self._storage.modified(path)}") for path, size in files]

    @staticmethod
    def _is_version_of(path: str, schema: Schema) -> bool:
        type, _, last = path.partition("/")
        name = parse_file_name(last)
        return type == schema.type and name is not None and name.version == schema.version


class PackagedStore(FolderStore):
    """A read-only ``SchemaStore`` of the types that come with balog."""

    def __init__(self) -> None:
        super().__init__(str(resources.files("balog.schemas").joinpath("payload")))
        self.place = "balog"

    def create(self, schema: Schema) -> bool:
        """Reject the schema: the package is read-only.

        Raises:
            InvalidSchemaError: always.
        """
        raise InvalidSchemaError("the types that come with balog are read-only; name a registry to register a type")
