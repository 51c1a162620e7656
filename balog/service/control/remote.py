"""The version store behind a service's API, for teams without access to the store itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from balog.common.errors import ConfigError
from balog.common.http import HttpClient, HttpResponse, HttpStatusError
from balog.service.control.folder import FolderControl
from balog.service.control.store import ControlError, DocumentVersion, Pushed, ServiceStatus, VersionConflict
from balog.sinks.service import bearer

T = TypeVar("T")
_PATH = "/v1/config"


class RemoteControl:
    """A ``FolderControl`` behind a service. The author of a version is the token's name; ``who`` is ignored."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.place = url.rstrip("/")
        self._client = HttpClient(self.place, headers=bearer(token), timeout=30.0)

    def head(self) -> DocumentVersion | None:
        """See ``FolderControl``."""
        entries = self.entries(1)
        return entries[0] if entries else None

    def entry(self, number: int) -> DocumentVersion:
        """See ``FolderControl``."""
        return self._get(f"/history/{number}", DocumentVersion)

    def entries(self, limit: int = 100) -> list[DocumentVersion]:
        """See ``FolderControl``."""
        return self._get(f"/history?limit={limit}", list[DocumentVersion])

    def document(self, sha: str) -> bytes:
        """See ``FolderControl``."""
        return bytes(self._get(f"/documents/{quote(sha)}", msgspec.Raw))

    def push(self, data: bytes, *, who: str, message: str, base: int | None = None) -> Pushed:
        """See ``FolderControl``."""
        return self._post("", data, {"message": message, "base": base})

    def rollback(self, number: int | None = None, *, who: str, message: str, base: int | None = None) -> Pushed:
        """See ``FolderControl``."""
        return self._post("/rollback", b"", {"number": number, "message": message, "base": base})

    def services(self) -> list[ServiceStatus]:
        """See ``FolderControl``."""
        return self._get("/services", list[ServiceStatus])

    def close(self) -> None:
        """See ``FolderControl``."""
        self._client.close()

    def _get(self, path: str, type: type[T]) -> T:
        return self._decoded(lambda: self._client.get(_PATH + path), type)

    def _post(self, path: str, body: bytes, options: dict[str, Any]) -> Pushed:
        query = urlencode({name: value for name, value in options.items() if value is not None})
        return self._decoded(lambda: self._client.post(f"{_PATH}{path}?{query}", body), Pushed)

    def _decoded(self, ask: Callable[[], HttpResponse], type: type[T]) -> T:
        try:
            answer = ask()
        except HttpStatusError as error:
            raise self._translate(error) from None
        try:
            return msgspec.json.decode(answer.body, type=type)
        except msgspec.DecodeError as error:
            raise ControlError(f"{self.place}{_PATH}: the answer is not that of a balog service: {error}") from None

    def _translate(self, error: HttpStatusError) -> Exception:
        """Return the error that the store itself would raise."""
        try:
            content: Any = msgspec.json.decode(error.answer.body)
            if error.answer.status == 409 and "head" in content:
                return VersionConflict(int(content["head"]), int(content["base"]))
            if error.answer.status == 422 and content.get("problems"):
                first = content["problems"][0]
                more = f" (and {len(content['problems']) - 1} more)" if len(content["problems"]) > 1 else ""
                return ConfigError(f"{first['reason']}{more}", self.place, str(first["path"]))
            if "problem" in content:
                return ControlError(f"{self.place}: {error.answer.status}: {content['problem']}")
        except (msgspec.DecodeError, AttributeError, TypeError, KeyError, ValueError):
            pass
        return error


Control = FolderControl | RemoteControl
"""A store of versions: a folder, an object store, or a service's API; ``RemoteControl`` raises ``SinkError``, too."""


def open_control(location: str, options: Mapping[str, Any] | None = None, token: str | None = None) -> Control:
    """Open a version store, without connecting yet.

    Args:
        location: a folder, ``s3://BUCKET/PATH``, or a service, ``http(s)://HOST:PORT``.
        options: options of the URL's store, as in a config.
        token: bearer token of a service, with the right to ``configure``, or to ``read`` only.

    Raises:
        ConfigError: the location is not valid, or takes no options or token.
        MissingExtraError: packages for the location are not installed.
    """
    if location.startswith(("http://", "https://")):
        return RemoteControl(location, token)
    return FolderControl(location, options)
