"""The registry behind a service's API. The service decides which versions are registered."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from balog.common.errors import ConfigError
from balog.common.http import HttpClient, HttpResponse, HttpStatusError
from balog.common.storage import StorageError
from balog.registry import IncompatibleError, InvalidSchemaError, Registry, Schema, VersionTakenError, open_registry
from balog.registry.comparing import CompatibilityReport, Mode
from balog.registry.names import is_type, parse_file_name
from balog.registry.store import Listing, StoredVersion
from balog.sinks.base import SinkError
from balog.sinks.service import bearer

FORMS = {"json": "application/schema+json", "protobuf": "text/x-protobuf"}
"""Media types of schemas by form."""

_PATH = "/v1/schemas"


class VersionEntry(Struct, frozen=True):
    """A version in the API's listing: ``file`` is its file name in a folder, ``mark`` changes with its content."""

    version: str
    file: str
    mark: str = ""


class TypeEntry(Struct, frozen=True):
    """A type in the API's listing, with its versions in ascending order."""

    type: str
    versions: list[VersionEntry]


class SchemaRejection(Struct, frozen=True):
    """The API's answer to a rejected schema; ``kind`` names the error."""

    problem: str
    path: str = "$"
    kind: Literal["", "schema", "name", "taken", "incompatible", "unknown"] = ""
    verdict: CompatibilityReport | None = None


class RemoteStore:
    """A ``balog.registry.store.SchemaStore`` behind ``/v1/schemas`` of a service.

    Args:
        url: URL of the service.
        token: bearer token with the right to read, and to register new versions.

    Raises:
        ConfigError, MissingExtraError: see ``HttpClient``.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.place = url.rstrip("/")
        self._client = HttpClient(self.place, headers=bearer(token), timeout=30.0)

    def listing(self) -> Listing:
        """See ``Store``."""
        try:
            entries = msgspec.json.decode(self._body(lambda: self._client.get(_PATH)), type=list[TypeEntry])
        except msgspec.DecodeError:
            raise StorageError(f"{self.place} does not answer as an event service does; is the URL right?") from None
        listing: Listing = {}
        for entry in entries:
            names = {each: parse_file_name(each.file) for each in entry.versions}
            if is_type(entry.type):
                listing[entry.type] = {
                    name.version: StoredVersion(name, each.mark) for each, name in names.items() if name
                }
        return listing

    def read(self, type: str, kept: StoredVersion) -> bytes | None:
        """See ``Store``."""
        try:
            return self._body(lambda: self._client.get(f"{_PATH}/{quote(type)}/{quote(kept.name.version)}"))
        except StorageError as error:
            if isinstance(error.__cause__, HttpStatusError) and error.__cause__.answer.status == 404:
                return None
            raise

    def create(self, schema: Schema) -> bool:
        """See ``Store``. The service compares the versions, too."""
        self.register(schema, "backward")
        return True

    def register(self, schema: Schema, mode: Mode) -> CompatibilityReport:
        """Post a version. Raises the errors of ``Registry.register``."""
        query = {"mode": mode} | ({"message": schema.message} if schema.message else {})
        path = f"{_PATH}/{quote(schema.type)}/{quote(schema.version)}?{urlencode(query)}"
        try:
            answer = self._body(lambda: self._client.post(path, schema.source, FORMS[schema.form]))
        except StorageError as error:
            if isinstance(error.__cause__, HttpStatusError):
                self._raise_rejection(schema, error.__cause__.answer.body)
            raise
        return msgspec.json.decode(answer, type=CompatibilityReport)

    def close(self) -> None:
        """See ``Store``."""
        self._client.close()

    def _raise_rejection(self, schema: Schema, body: bytes) -> None:
        try:
            rejection = msgspec.json.decode(body, type=SchemaRejection)
        except msgspec.DecodeError:
            return
        if rejection.kind == "taken":
            raise VersionTakenError(schema)
        if rejection.kind == "incompatible" and rejection.verdict is not None:
            raise IncompatibleError(rejection.problem, rejection.verdict)
        if rejection.kind in ("schema", "name"):
            raise InvalidSchemaError(rejection.problem, f"{schema.type}/{schema.version}", rejection.path)

    @staticmethod
    def _body(ask: Callable[[], HttpResponse]) -> bytes:
        try:
            return ask().body
        except SinkError as error:
            raise StorageError(str(error), retryable=error.retryable) from error


class RemoteRegistry(Registry):
    """See ``Registry``. The service decides which versions are registered."""

    def __init__(self, url: str, token: str | None = None, max_age: float = 5.0) -> None:
        self._remote = RemoteStore(url, token)
        super().__init__(self._remote, max_age)

    def register(self, schema: Schema, mode: Mode = "backward") -> CompatibilityReport:
        """See ``Registry``."""
        self.check(schema)
        verdict = self._remote.register(schema, mode)
        self.refresh()
        return verdict


def open_any_registry(
    location: str | None = None, options: Mapping[str, Any] | None = None, max_age: float = 5.0
) -> Registry:
    """Open a registry with ``open_registry``, or the registry of a service at ``http(s)://HOST:PORT``.

    The bearer token for a service comes from the environment variable ``BALOG_TOKEN``, if it is set.

    Raises:
        ConfigError: the location is not valid.
        MissingExtraError: packages for the location are not installed.
    """
    if location is not None and location.startswith(("http://", "https://")):
        if options:
            raise ConfigError("are for a store; for a service, set BALOG_TOKEN", path="options")
        return RemoteRegistry(location, os.environ.get("BALOG_TOKEN") or None, max_age)
    return open_registry(location, options, max_age)
