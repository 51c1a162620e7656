"""The listing of a registry: the versions of its store and of the types that come with balog, each read once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from balog.common.errors import BalogError
from balog.common.storage import StorageError
from balog.common.text import printable, suggest
from balog.registry.names import latest, order
from balog.registry.schema import InvalidSchemaError, PayloadValidator, Schema
from balog.registry.store import Listing, PackagedStore, SchemaStore, StoredVersion

_MOST_LISTED = 10
_MISS_SECONDS = 1.0


class UnknownTypeError(BalogError):
    """The registry has no such type; the message has the type that was probably meant, or the known ones."""

    def __init__(self, type: str, known: list[str]) -> None:
        super().__init__(f"the registry knows no type {quoted(type)}{suggest(type, known, _MOST_LISTED)}")
        self.type, self.known = type, known


class UnknownVersionError(BalogError):
    """The type has no such version; the message lists the known versions."""

    def __init__(self, type: str, version: str, known: list[str]) -> None:
        more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
        listed = ", ".join(known[::-1][:_MOST_LISTED])
        super().__init__(f"the registry has no version {quoted(version)} of {type}; there are {listed}{more}")
        self.type, self.version = type, version


class ListedVersion:
    """A version of a type in a store, read and compiled at most once."""

    def __init__(self, store: SchemaStore, type: str, kept: StoredVersion) -> None:
        self.store, self.kept = store, kept
        self._type = type
        self._schema: Schema | None = None
        self._validator: PayloadValidator | InvalidSchemaError | None = None

    def schema(self) -> Schema | None:
        """Return the schema; None if it was deleted since it was listed."""
        if self._schema is None and (source := self.store.read(self._type, self.kept)) is not None:
            name = self.kept.name
            self._schema = Schema(self._type, name.version, name.form, source, name.message)
        return self._schema

    def validator(self, compile: Callable[[], PayloadValidator]) -> PayloadValidator:
        """Return the validator. ``compile`` makes it at the first call; its InvalidSchemaError is raised at each."""
        if self._validator is None:
            try:
                self._validator = compile()
            except InvalidSchemaError as error:  # protoc does not run anew for each payload
                self._validator = error
        if isinstance(self._validator, InvalidSchemaError):
            raise InvalidSchemaError(self._validator.reason, self._validator.source, self._validator.path)
        return self._validator


class VersionListing:
    """The listed versions by type, refreshed when they are older than ``max_age`` seconds. Thread-safe.

    A missing version is looked up again after a second. While the store is unreachable, the last listing stays in use.

    Attributes:
        problem: why the last listing failed; "" if it did not.
    """

    def __init__(self, store: SchemaStore | None, max_age: float) -> None:
        self._packaged = PackagedStore()
        self._packaged_versions = self._packaged.listing()
        self.store: SchemaStore = store or self._packaged
        self.problem = ""
        self._max_age = max_age
        self._types: dict[str, dict[str, ListedVersion]] | None = None
        self._listed = 0.0
        self._lock = threading.Lock()

    def types(self, max_age: float | None = None) -> dict[str, dict[str, ListedVersion]]:
        """Return all types with their versions, ascending.

        Raises:
            StorageError: the store is unreachable, and was never listed.
        """
        max_age = self._max_age if max_age is None else max_age
        if self._types is None:
            with self._lock:
                if self._types is None:
                    self._list()
        elif time.monotonic() - self._listed > max_age and self._lock.acquire(blocking=False):
            try:  # one thread lists, the others use the last listing
                self._list()
            finally:
                self._lock.release()
        assert self._types is not None  # noqa: S101
        return self._types

    def versions(self, type: str) -> dict[str, ListedVersion]:
        """Return a type's versions, ascending.

        Raises:
            UnknownTypeError: there is no such type.
        """
        versions = self.types().get(type) or self.types(min(self._max_age, _MISS_SECONDS)).get(type)
        if versions is None:
            raise UnknownTypeError(type, sorted(self.types()))
        return versions

    def find(self, type: str, version: str | None) -> tuple[str, ListedVersion]:
        """Return a version, or the latest one, with its number.

        Raises:
            UnknownTypeError, UnknownVersionError: the type or version does not exist.
        """
        versions = self.versions(type)
        if version is None:
            version = latest(list(versions))
        elif version not in versions:
            versions = self.types(min(self._max_age, _MISS_SECONDS)).get(type, {})
            if version not in versions:
                raise UnknownVersionError(type, version, list(versions))
        return version, versions[version]

    def refresh(self) -> None:
        """List the store now. If that fails, ``problem`` holds the reason and the last listing stays in use.

        Raises:
            StorageError: the store is unreachable, and was never listed.
        """
        with self._lock:
            self._list()

    def _list(self) -> None:
        try:
            listing: Listing = {} if self.store is self._packaged else self.store.listing()
            self.problem = ""
        except StorageError as error:
            self.problem = str(error)
            if self._types is None:
                raise
            self._listed = time.monotonic()
            return
        before, types = self._types or {}, dict[str, dict[str, ListedVersion]]()
        for store, part in ((self._packaged, self._packaged_versions), (self.store, listing)):
            for type, versions in part.items():
                for version, kept in versions.items():
                    known = before.get(type, {}).get(version)
                    if known is None or known.store is not store or known.kept != kept:
                        known = ListedVersion(store, type, kept)
                    types.setdefault(type, {})[version] = known
        self._types = {type: dict(sorted(v.items(), key=lambda item: order(item[0]))) for type, v in types.items()}
        self._listed = time.monotonic()


def quoted(name: str) -> str:
    """Return a name in quotes, in at most 100 printable characters."""
    return f"'{printable(name[:100])}'"
