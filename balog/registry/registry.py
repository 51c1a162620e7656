"""The registry: the types and versions of a store, and those that come with balog."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balog.common.errors import BalogError, ConfigError
from balog.common.storage import StorageError, is_url
from balog.registry.listing import UnknownVersionError, VersionListing, quoted
from balog.registry.names import check_names, major, order
from balog.registry.schema import MAX_SCHEMA_BYTES, InvalidSchemaError, PayloadValidator, Schema
from balog.registry.store import FolderStore, Listing, SchemaStore

if TYPE_CHECKING:
    from balog.registry.comparing import CompatibilityReport, Mode


class VersionTakenError(BalogError):
    """Another schema is registered under this version. Versions are immutable."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(
            f"{schema.type} {schema.version} is already registered with another schema, and versions are immutable; "
            "use a higher version"
        )


class IncompatibleError(BalogError):
    """A new version is incompatible with the registered ones, or its version number is too low.

    Attributes:
        verdict: the findings.
    """

    def __init__(self, reason: str, verdict: CompatibilityReport) -> None:
        super().__init__(reason)
        self.verdict = verdict


class Registry:
    """Types, their versions and validators. Thread-safe.

    The registry lists the store at the first use, and again when the listing is older than ``max_age``. So a version
    that was added or deleted elsewhere is noticed within that time, and a missing one within a second. While the store
    is unreachable, the last listing stays in use.

    Args:
        store: the store of the types; None for the types that come with balog.
        max_age: seconds until a listing is refreshed. With infinity, call ``refresh`` yourself; then only requests for
            missing versions wait for the store.

    Attributes:
        place: the store's location, for people.
        is_shared: other requests wait for this process while it registers a version. Then versions are compared in a
            child process, for at most 10 s of processor time.
    """

    def __init__(self, store: SchemaStore | None = None, max_age: float = 5.0) -> None:
        self._listing = VersionListing(store, max_age)
        self._store = self._listing.store
        self.place = self._store.place
        self.is_shared = False
        self._registering = threading.Lock()

    @property
    def problem(self) -> str:
        """Why the last listing failed; "" if it did not."""
        return self._listing.problem

    def types(self) -> list[str]:
        """Return the names of all types, sorted."""
        return sorted(self._listing.types())

    def versions(self, type: str) -> list[str]:
        """Return a type's versions, ascending.

        Raises:
            UnknownTypeError: there is no such type.
        """
        return list(self._listing.versions(type))

    def listing(self) -> Listing:
        """Return all stored versions by type, types sorted, versions ascending."""
        types = self._listing.types()
        return {type: {version: entry.kept for version, entry in types[type].items()} for type in sorted(types)}

    def get(self, type: str, version: str | None = None) -> Schema:
        """Return a version of a type, as it was registered.

        Args:
            version: None for the latest release, or the latest prerelease if there is no release.

        Raises:
            UnknownTypeError, UnknownVersionError: the type or version does not exist.
            StorageError: the store is unreachable.
        """
        version, entry = self._listing.find(type, version)
        if (schema := entry.schema()) is None:  # deleted since it was listed
            self.refresh()
            raise UnknownVersionError(type, version, self.versions(type))
        return schema

    def validator(self, type: str, version: str | None = None) -> PayloadValidator:
        """Return the validator of a version's payloads; the same object until the version is deleted.

        Raises:
            InvalidSchemaError: the stored file is not a schema.
            MissingExtraError: packages for the schema's form are not installed.
            UnknownTypeError, UnknownVersionError, StorageError: as ``get``.
        """
        version, entry = self._listing.find(type, version)
        return entry.validator(lambda: make_validator(self.get(type, version)))

    def register(self, schema: Schema, mode: Mode = "backward") -> CompatibilityReport:
        """Register a new version, if it is compatible. A registered version is immutable.

        The version must be higher than every version of its major. Within a major (for 0.x: within a minor), the schema
        must be compatible in the mode, and the version at least as high as the change requires. A new major may break.
        Registering the same document again succeeds.

        Raises:
            ConfigError: the type's name, the version or the message is not valid.
            InvalidSchemaError: the document is not a schema, or the schema of another type.
            VersionTakenError: the version exists with another document.
            IncompatibleError: the version is incompatible; ``verdict`` holds the findings.
            StorageError: the store is unreachable.
        """
        self.check(schema)
        with self._registering:  # two at once may each follow what there is, and not each other
            return self._register(schema, mode)

    def _register(self, schema: Schema, mode: Mode) -> CompatibilityReport:
        self.refresh()
        if self.problem:
            raise StorageError(self.problem)
        if (verdict := self._existing_report(schema)) is not None:
            return verdict
        verdict = self.check_compatibility(schema, mode)
        if not self._store.create(schema):
            self.refresh()
            if (same := self._existing_report(schema)) is not None:
                return same
            raise VersionTakenError(schema)
        self.refresh()
        return verdict

    def check_compatibility(self, schema: Schema, mode: Mode = "backward") -> CompatibilityReport:
        """Compare a new version with the registered ones, without registering it. Raises the errors of ``register``."""
        from balog.registry.comparing import CompatibilityReport

        there = list(self._listing.types().get(schema.type, ()))
        rivals = [v for v in there if major(v) == major(schema.version) and order(v) >= order(schema.version)]
        if rivals:
            raise IncompatibleError(
                f"{schema.type} {schema.version} would come after {rivals[-1]}; use a higher version",
                CompatibilityReport(compatible=False, bump="none"),
            )
        before = [self.get(schema.type, v) for v in there if order(v) < order(schema.version)]
        if not before:
            return CompatibilityReport(compatible=True, bump="none")
        from balog.registry.comparing import compare_history, compare_in_child, least_version

        compare = compare_in_child if self.is_shared else compare_history
        verdict = compare(before, schema, mode)
        least = least_version(before, verdict)
        if order(schema.version) < order(least):
            why = next((f"{finding.path}: {finding.reason}" for finding in verdict.findings if finding.breaks), "")
            raise IncompatibleError(
                f"{schema.type} {schema.version} after {before[-1].version}: "
                + (f"not {mode} compatible: {why}; " if not verdict.compatible else "too small a step; ")
                + f"the least version is {least}",
                verdict,
            )
        return verdict

    def check(self, schema: Schema) -> PayloadValidator:
        """Check a schema by itself, without comparing it with other versions. Raises the errors of ``register``."""
        check_names(schema)
        where = f"{schema.type}/{schema.version}"
        if len(schema.source) > MAX_SCHEMA_BYTES:
            raise InvalidSchemaError(f"larger than {MAX_SCHEMA_BYTES >> 20} MiB", where)
        validator = make_validator(schema)
        if schema.form == "json":
            from balog.registry.json_schema import check_document

            declared = check_document(schema.source, where)
            if declared not in (None, schema.type):
                raise InvalidSchemaError(
                    f"is of the type {quoted(str(declared))}", where, "$.properties.cls_type.const"
                )
        return validator

    def refresh(self) -> None:
        """List the store now. If that fails, ``problem`` holds the reason and the last listing stays in use.

        Raises:
            StorageError: the store is unreachable, and was never listed.
        """
        self._listing.refresh()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _existing_report(self, schema: Schema) -> CompatibilityReport | None:
        """Return the report of a version that is registered already; None if it is not.

        Raises:
            VersionTakenError: the version exists with another schema.
        """
        from balog.registry.comparing import CompatibilityReport

        if schema.version not in self._listing.types().get(schema.type, ()):
            return None
        if self.get(schema.type, schema.version) != schema:
            raise VersionTakenError(schema)
        return CompatibilityReport(compatible=True, bump="none")


def open_registry(path: str | None = None, options: Mapping[str, Any] | None = None, max_age: float = 5.0) -> Registry:
    """Open the registry in a folder or at a URL that ``balog.common.storage`` supports.

    Args:
        path: a path or URL, such as ``s3://…``; None for only the types that come with balog.
        options: options of the URL's file system.
        max_age: see ``Registry``.

    Raises:
        ConfigError: the path or URL is not valid.
        MissingExtraError: packages for the URL are not installed.
    """
    return Registry(None if path is None else FolderStore(path, options), max_age)


def may_be_folder(path: str) -> bool:
    """Return False if a registry's path has no folder; whether a URL has one is not asked."""
    return is_url(path) or Path(path).is_dir()


def check_folder(path: str) -> None:
    """Check that the folder of a registry exists, unless it is a URL: a mistyped one would be an empty registry.

    Raises:
        ConfigError: it does not exist.
    """
    if not may_be_folder(path):
        raise ConfigError("no such folder of schemas", path)


def make_validator(schema: Schema, where: str = "") -> PayloadValidator:
    """Compile a schema according to its form.

    Args:
        where: the file, for errors; the default is ``TYPE/VERSION``.

    Raises:
        InvalidSchemaError: the document is not a schema.
        MissingExtraError: packages for the form are not installed.
    """
    where = where or f"{schema.type}/{schema.version}"
    if schema.form == "protobuf":
        from balog.registry.protobuf import compile_proto

        return compile_proto(schema.source, schema.message, where)
    from balog.registry.json_schema import JsonValidator

    return JsonValidator(schema.source, where)
