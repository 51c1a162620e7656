"""The registry: types and their versions out of a store, above those that come with balog."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from balog.errors import BalogError
from balog.registry.names import check_message, check_type, check_version, latest, major, order
from balog.registry.schema import MAX_SCHEMA_BYTES, InvalidSchemaError, PayloadValidator, Schema
from balog.registry.store import FolderStore, Listing, PackagedStore, SchemaStore, StoredVersion
from balog.registry.worker_pool import COMPARE_SECONDS, WorkExceededError, workers
from balog.storage import StorageError

if TYPE_CHECKING:
    from balog.registry.comparing import CompatibilityReport, Mode

__all__ = [
    "IncompatibleError",
    "Registry",
    "UnknownTypeError",
    "UnknownVersionError",
    "VersionTakenError",
    "make_validator",
    "open_registry",
]

_MOST_SAID = 10
_MISS_SECONDS = 1.0


class UnknownTypeError(BalogError):
    """The registry has no type of that name; the message says which there are."""

    def __init__(self, type: str, known: list[str]) -> None:
        super().__init__(f"the registry knows no type {_said(type)}; there are {_some(known) or 'none'}")
        self.type, self.known = type, known


class UnknownVersionError(BalogError):
    """The registry knows the type and not that version; the message says which there are."""

    def __init__(self, type: str, version: str, known: list[str]) -> None:
        super().__init__(f"the registry has no version {_said(version)} of {type}; there are {_some(known[::-1])}")
        self.type, self.version = type, version


class VersionTakenError(BalogError):
    """Another schema is registered under that version, which never changes."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(
            f"{schema.type} {schema.version} is registered already with another schema, and a version never changes; "
            "take a higher one"
        )


class IncompatibleError(BalogError):
    """A new version may not follow those that there are, or not with so small a step.

    Attributes:
        verdict: why.
    """

    def __init__(self, reason: str, verdict: CompatibilityReport) -> None:
        super().__init__(reason)
        self.verdict = verdict


class Registry:
    """Types, their versions and validators; may be used from any thread.

    What there is, is listed at the first use and then again by whoever asks after ``patience`` seconds, so a version
    that was added or deleted elsewhere is noticed within that time, and a missing one within a second. Where the store
    cannot be reached, what was listed before holds on.

    Args:
        store: where types are kept; None for those that come with balog alone.
        patience: seconds for which a listing holds; infinity for who calls ``refresh`` by himself, so that only who
            asks for what is missing waits for the store.

    Attributes:
        place: where it is, for people.
        problem: why the store could not be listed the last time; "" when it could.
        is_shared: whether others wait for this process while it registers a version. Then versions are compared in a
            child process, for at most 30 s of processor time.
    """

    def __init__(self, store: SchemaStore | None = None, patience: float = 5.0) -> None:
        self._packaged = PackagedStore()
        self._store: SchemaStore = store or self._packaged
        self.place = self._store.place
        self.problem = ""
        self.is_shared = False
        self._patience = patience
        self._own = self._packaged.listing()
        self._listing: dict[str, dict[str, tuple[SchemaStore, StoredVersion]]] | None = None
        self._listed = 0.0
        self._listing_lock = threading.Lock()
        self._schemas: dict[tuple[str, str, SchemaStore, StoredVersion], Schema] = {}
        self._bundled: dict[tuple[str, str, SchemaStore, StoredVersion], Schema] = {}
        self._validators: dict[tuple[str, str, SchemaStore, StoredVersion], PayloadValidator | InvalidSchemaError] = {}
        self._registering = threading.Lock()

    def types(self) -> list[str]:
        """Give the names of all types, sorted."""
        return sorted(self._now())

    def versions(self, type: str) -> list[str]:
        """Give a type's versions, ascending.

        Raises:
            UnknownTypeError: there is no such type.
        """
        return list(self._of(type))

    def listing(self) -> Listing:
        """Give all that there is as stores keep it: types sorted, versions ascending."""
        now = self._now()
        return {type: {version: kept for version, (_, kept) in now[type].items()} for type in sorted(now)}

    def get(self, type: str, version: str | None = None) -> Schema:
        """Return a version of a type, with the other types that it refers to; errors as of ``original``, and

        Raises:
            InvalidSchemaError: it refers to a type or version that the registry does not have.
        """
        version, store, kept = self._find(type, version)
        key = (type, version, store, kept)
        schema = self._bundled.get(key)
        if schema is None:
            schema = self._bundled[key] = self.bundle(self.original(type, version))
        return schema

    def bundle(self, schema: Schema) -> Schema:
        """Return a schema whose document holds the types of this registry that it refers to.

        Raises:
            InvalidSchemaError: it refers to a type or version that there is not, or is no JSON object.
        """
        if schema.form != "json" or b'"$ref"' not in schema.source:
            return schema
        from balog.registry.bundling import bundle
        from balog.registry.json_schema import decode_schema

        where = f"{schema.type}/{schema.version}" if schema.type else ""

        def find(type: str, version: str) -> dict[str, Any]:
            try:
                other = self.original(type, version)
            except (UnknownTypeError, UnknownVersionError) as error:
                raise InvalidSchemaError(f"$ref to {type}/{version}: {error}", where) from None
            if other.form != "json":
                raise InvalidSchemaError(f"$ref to {type}/{version}: it is described by protobuf", where)
            return decode_schema(other.source, f"{type}/{version}")

        document = decode_schema(schema.source, where)
        found = bundle(schema, document, find)
        return schema if found is document else msgspec.structs.replace(schema, source=msgspec.json.encode(found))

    def original(self, type: str, version: str | None = None) -> Schema:
        """Return a version as it was registered; None asks for the latest, a release where there is one.

        Raises:
            UnknownTypeError, UnknownVersionError: there is none.
            StorageError: the store can't be reached.
        """
        version, store, kept = self._find(type, version)
        key = (type, version, store, kept)
        schema = self._schemas.get(key)
        if schema is None:
            source = store.read(type, kept)
            if source is None:  # deleted since it was listed
                self.refresh()
                raise UnknownVersionError(type, version, self.versions(type))
            schema = self._schemas[key] = Schema(type, version, kept.name.form, source, kept.name.message)
        return schema

    def validator(self, type: str, version: str | None = None) -> PayloadValidator:
        """Give the validator of a version's payloads; the same one until the version is gone.

        Raises:
            InvalidSchemaError: somebody put a file there that is no schema.
            MissingExtraError: what the schema's form needs is not installed.
            UnknownTypeError, UnknownVersionError, StorageError: as ``get``.
        """
        version, store, kept = self._find(type, version)
        key = (type, version, store, kept)
        validator = self._validators.get(key)
        if validator is None:
            try:
                validator = make_validator(self.get(type, version))
            except InvalidSchemaError as error:  # protoc does not run anew for each payload
                validator = error
            self._validators[key] = validator
        if isinstance(validator, InvalidSchemaError):
            raise InvalidSchemaError(validator.reason, validator.source, validator.path)
        return validator

    def register(self, schema: Schema, mode: Mode = "backward") -> CompatibilityReport:
        """Keep a new version for ever, if it may follow those that there are.

        It must be higher than every version of its major. Within a major (of 0.x: within a minor) it must be compatible
        in the mode and at least so much higher as the change asks for; a new major may break. The same document again
        is fine.

        Raises:
            ConfigError: the type's name, the version or the message is none.
            InvalidSchemaError: the document is no schema, or that of another type.
            VersionTakenError: the version is there with another document.
            IncompatibleError: it may not follow; ``verdict`` says why.
            StorageError: the store can't be reached.
        """
        self.check(schema)
        with self._registering:  # two at once may each follow what there is, and not each other
            verdict = self._register(schema, mode)
        return msgspec.structs.replace(verdict, defects=self.defects(schema))

    def defects(self, schema: Schema) -> list[str]:
        """Return a line for each payload, of those that a schema suggests, on which the two validators disagree.

        None where one of the validators is not installed, or for protobuf.
        """
        if schema.form != "json":
            return []
        schema = self.bundle(schema)
        try:
            if self.is_shared:
                return list(workers().run("disagreements", [schema.source]))
            from balog.registry.json_schema import decode_schema
            from balog.registry.validator_pair import disagreements

            return disagreements(decode_schema(schema.source))
        except (BalogError, ImportError):
            return []

    def _register(self, schema: Schema, mode: Mode) -> CompatibilityReport:
        self.refresh()
        if self.problem:
            raise StorageError(self.problem)
        if (verdict := self._again(schema)) is not None:
            return verdict
        verdict = self.judge(schema, mode)
        if not self._store.create(schema):
            self.refresh()
            if (same := self._again(schema)) is not None:
                return same
            raise VersionTakenError(schema)
        self.refresh()
        return verdict

    def judge(self, schema: Schema, mode: Mode = "backward") -> CompatibilityReport:
        """Tell what ``register`` would say of a new version, without keeping it; errors as there."""
        from balog.registry.comparing import CompatibilityReport

        there = list(self._now().get(schema.type, ()))
        rivals = [v for v in there if major(v) == major(schema.version) and order(v) >= order(schema.version)]
        if rivals:
            raise IncompatibleError(
                f"{schema.type} {schema.version} would come after {rivals[-1]}; take a higher version",
                CompatibilityReport(compatible=False, bump="none"),
            )
        before = [self.get(schema.type, v) for v in there if order(v) < order(schema.version)]
        if not before:
            return CompatibilityReport(compatible=True, bump="none")
        from balog.registry.comparing import compare_history, least_version

        schema = self.bundle(schema)
        verdict = self._compare_apart(before, schema, mode) if self.is_shared else compare_history(before, schema, mode)
        least = least_version(before, verdict)
        if order(schema.version) < order(least):
            why = next((f"{found.path}: {found.reason}" for found in verdict.findings if found.breaks), "")
            raise IncompatibleError(
                f"{schema.type} {schema.version} after {before[-1].version}: "
                + (f"not {mode} compatible: {why}; " if not verdict.compatible else "too small a step; ")
                + f"the least version is {least}",
                verdict,
            )
        return verdict

    def _compare_apart(self, before: list[Schema], schema: Schema, mode: Mode) -> CompatibilityReport:
        from balog.registry.comparing import CompatibilityReport

        try:
            found = workers().run("judge", [before, schema, mode], COMPARE_SECONDS)
        except WorkExceededError:
            raise IncompatibleError(
                f"{schema.type} {schema.version} can't be compared with {before[-1].version} within "
                f"{COMPARE_SECONDS:g} s; take a new major version, or a simpler schema",
                CompatibilityReport(compatible=False, bump="major"),
            ) from None
        return msgspec.convert(found, CompatibilityReport)

    def check(self, schema: Schema) -> PayloadValidator:
        """See whether a schema can be registered at all, apart from what there is; errors as of ``register``."""
        check_type(schema.type)
        check_version(schema.version)
        check_message(schema.message, schema.form)
        where = f"{schema.type}/{schema.version}"
        if len(schema.source) > MAX_SCHEMA_BYTES:
            raise InvalidSchemaError(f"larger than {MAX_SCHEMA_BYTES >> 20} MiB", where)
        validator = make_validator(self.bundle(schema))
        said = _said_type(schema)
        if said not in (None, schema.type):
            raise InvalidSchemaError(f"is of the type {_said(str(said))}", where, "$.properties.cls_type.const")
        return validator

    def refresh(self) -> None:
        """List the store now. Where it can't be reached, ``problem`` says why, and what was listed before holds on.

        Raises:
            StorageError: it can't be reached and was never listed.
        """
        with self._listing_lock:
            self._list()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _now(self, patience: float | None = None) -> dict[str, dict[str, tuple[SchemaStore, StoredVersion]]]:
        patience = self._patience if patience is None else patience
        if self._listing is None:
            with self._listing_lock:
                if self._listing is None:
                    self._list()
        elif time.monotonic() - self._listed > patience and self._listing_lock.acquire(blocking=False):
            try:  # one lists, the others go on with what there was
                self._list()
            finally:
                self._listing_lock.release()
        assert self._listing is not None  # noqa: S101
        return self._listing

    def _list(self) -> None:
        try:
            found: Listing = {} if self._store is self._packaged else self._store.listing()
            self.problem = ""
        except StorageError as error:
            self.problem = str(error)
            if self._listing is None:
                raise
            self._listed = time.monotonic()
            return
        listing: dict[str, dict[str, tuple[SchemaStore, StoredVersion]]] = {}
        for store, part in ((self._packaged, self._own), (self._store, found)):
            for type, versions in part.items():
                there = listing.setdefault(type, {})
                there.update({version: (store, kept) for version, kept in versions.items()})
        self._listing = {type: dict(sorted(v.items(), key=lambda item: order(item[0]))) for type, v in listing.items()}
        self._listed = time.monotonic()
        alive = {(type, version, *at) for type, found_ in self._listing.items() for version, at in found_.items()}
        self._schemas = {key: schema for key, schema in self._schemas.items() if key in alive}
        self._bundled = {key: schema for key, schema in self._bundled.items() if key in alive}
        self._validators = {key: validator for key, validator in self._validators.items() if key in alive}

    def _of(self, type: str) -> dict[str, tuple[SchemaStore, StoredVersion]]:
        found = self._now().get(type) or self._now(min(self._patience, _MISS_SECONDS)).get(type)
        if found is None:
            raise UnknownTypeError(type, self.types())
        return found

    def _find(self, type: str, version: str | None) -> tuple[str, SchemaStore, StoredVersion]:
        versions = self._of(type)
        if version is None:
            version = latest(list(versions))
        elif version not in versions:
            versions = self._now(min(self._patience, _MISS_SECONDS)).get(type, {})
            if version not in versions:
                raise UnknownVersionError(type, version, list(versions))
        return version, *versions[version]

    def _again(self, schema: Schema) -> CompatibilityReport | None:
        """Give the verdict on a version that is there already, None when there is none.

        Raises:
            VersionTakenError: it is another one.
        """
        from balog.registry.comparing import CompatibilityReport

        if schema.version not in self._now().get(schema.type, ()):
            return None
        if self.original(schema.type, schema.version) != schema:
            raise VersionTakenError(schema)
        return CompatibilityReport(compatible=True, bump="none")


def open_registry(
    place: str | None = None, options: Mapping[str, Any] | None = None, patience: float = 5.0
) -> Registry:
    """Open the registry in a folder or at a URL that ``balog.storage`` knows.

    Args:
        place: a path, ``s3://…``; None for the types that come with balog alone, which are below every store.
        options: of the URL's file system.
        patience: see ``Registry``.

    Raises:
        ConfigError, MissingExtraError: the place can't be one, or its packages are not installed.
    """
    return Registry(None if place is None else FolderStore(place, options), patience)


def make_validator(schema: Schema, where: str = "") -> PayloadValidator:
    """Compile a schema, by its form.

    Args:
        where: its file, for errors; ``TYPE/VERSION`` when "".

    Raises:
        InvalidSchemaError: it is none.
        MissingExtraError: what its form needs is not installed.
    """
    where = where or f"{schema.type}/{schema.version}"
    if schema.form == "protobuf":
        from balog.registry.protobuf import compile_proto

        return compile_proto(schema.source, schema.message, where)
    from balog.registry.json_schema import JsonValidator

    return JsonValidator(schema.source, where)


def _said_type(schema: Schema) -> Any:
    if schema.form != "json":
        return None
    try:
        properties = msgspec.json.decode(schema.source.removeprefix(b"\xef\xbb\xbf")).get("properties")
        return properties["cls_type"].get("const")
    except (AttributeError, KeyError, TypeError):
        return None


def _said(name: str) -> str:
    return "'" + "".join(char if char.isprintable() else "�" for char in name[:100]) + "'"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_MOST_SAID]) + (f" and {len(names) - _MOST_SAID} more" if len(names) > _MOST_SAID else "")
