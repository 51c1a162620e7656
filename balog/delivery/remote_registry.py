"""The registry behind a service's API: what it has is read once, and it decides what is registered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from balog.errors import ConfigError
from balog.http import HttpClient, HttpStatusError
from balog.registry import IncompatibleError, InvalidSchemaError, Registry, Schema, VersionTakenError, open_registry
from balog.registry.comparing import CompatibilityReport, Mode
from balog.registry.names import is_type, parse_file_name
from balog.registry.store import Listing, StoredVersion
from balog.sinks.base import SinkError
from balog.storage import StorageError

__all__ = ["FORMS", "RemoteRegistry", "SchemaRejection", "TypeEntry", "VersionEntry", "open_any_registry"]

FORMS = {"json": "application/schema+json", "protobuf": "text/x-protobuf"}
"""Media types of schemas, by their form."""

_PATH = "/v1/schemas"


class VersionEntry(Struct, frozen=True):
    """A version in the API's listing: ``file`` is the name that a folder would give it, ``mark`` changes with it."""

    version: str
    file: str
    mark: str = ""


class TypeEntry(Struct, frozen=True):
    """A type in the API's listing, its versions ascending."""

    type: str
    versions: list[VersionEntry]


class SchemaRejection(Struct, frozen=True):
    """What the API answers to a schema that it does not take; ``kind`` tells which error it was."""

    problem: str
    path: str = "$"
    kind: Literal["", "schema", "name", "taken", "incompatible", "unknown"] = ""
    verdict: CompatibilityReport | None = None


class RemoteStore:
    """See ``balog.registry.store.Store``: a service's ``/v1/schemas``.

    Args:
        url: of the service, before its paths.
        token: bearer token with the right to read, and to register where something shall be.

    Raises:
        ConfigError, MissingExtraError: as ``HttpClient``.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.place = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = HttpClient(self.place, headers=self._headers, timeout=30.0)

    def listing(self) -> Listing:
        """See ``Store``."""
        try:
            entries = msgspec.json.decode(self._request("GET", "", None), type=list[TypeEntry])
        except msgspec.DecodeError:
            raise StorageError(f"{self.place} does not answer as an event service does; is the URL right?") from None
        found: Listing = {}
        for entry in entries:
            names = {each: parse_file_name(each.file) for each in entry.versions}
            if is_type(entry.type):
                found[entry.type] = {
                    name.version: StoredVersion(name, each.mark) for each, name in names.items() if name
                }
        return found

    def read(self, type: str, kept: StoredVersion) -> bytes | None:
        """See ``Store``."""
        try:
            return self._request("GET", f"/{quote(type)}/{quote(kept.name.version)}", None)
        except StorageError as error:
            if isinstance(error.__cause__, HttpStatusError) and error.__cause__.answer.status == 404:
                return None
            raise

    def create(self, schema: Schema) -> bool:
        """See ``Store``; the service compares, too."""
        self.register(schema, "backward")
        return True

    def register(self, schema: Schema, mode: Mode) -> CompatibilityReport:
        """Post a version; errors as of ``Registry.register``."""
        query = {"mode": mode} | ({"message": schema.message} if schema.message else {})
        path = f"/{quote(schema.type)}/{quote(schema.version)}?{urlencode(query)}"
        try:
            answer = self._request("POST", path, schema.source, FORMS[schema.form])
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

    def _request(self, method: str, path: str, body: bytes | None, kind: str = "application/json") -> bytes:
        headers = {**self._headers, "User-Agent": "balog", **({} if body is None else {"Content-Type": kind})}
        try:
            return self._client.request(method, _PATH + path, body, headers).body
        except SinkError as error:
            raise StorageError(str(error), retryable=error.retryable) from error


class RemoteRegistry(Registry):
    """See ``Registry``; what may be registered is the service's to say."""

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
    place: str | None = None, options: Mapping[str, Any] | None = None, max_age: float = 5.0
) -> Registry:
    """Open a registry: as ``open_registry``, or a service's at ``http(s)://HOST:PORT``.

    The bearer token for a service is that of the environment's ``BALOG_TOKEN``, where there is one.

    Raises:
        ConfigError, MissingExtraError: the place can't be one, or its packages are not installed.
    """
    if place is not None and place.startswith(("http://", "https://")):
        if options:
            raise ConfigError("are for a store; a service takes a token, by BALOG_TOKEN", path="options")
        return RemoteRegistry(place, os.environ.get("BALOG_TOKEN") or None, max_age)
    return open_registry(place, options, max_age)
