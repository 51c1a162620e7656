"""Headers, cookies and queries that contain a credential."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl, quote_plus, unquote_plus, urlsplit

from balog.tap.credentials.credential import Credential
from balog.tap.credentials.grant import TokenGrant
from balog.tap.errors import TapError
from balog.tap.http.authorization import hide_queries
from balog.tap.http.connections import Request

Text: TypeAlias = "str | Callable[[], str] | TokenGrant"
"""A text; a function that returns one, such as a ``Credential``; or an OAuth grant, which is made one."""


def shared(credential: Text) -> Callable[[], str]:
    """Return a function that returns the credential; an OAuth grant as a ``Credential``, which all threads share."""
    if isinstance(credential, TokenGrant):
        return Credential(credential)
    return credential if callable(credential) else lambda: credential


class _Key:
    """A credential in a request; it is refreshed if the source rejects it."""

    def __init__(self, credential: Text, name: str) -> None:
        self._credential = shared(credential)
        self._name = name

    def rejected(self, request: Request, status: int, headers: Mapping[str, str]) -> bool:
        """Refresh the credential after a 401, if it can be refreshed."""
        refresh = getattr(self._credential, "refresh", None)
        if status != 401 or refresh is None:
            return False
        refresh(self._used(request))
        return True

    def _used(self, request: Request) -> str | None:
        """Return the credential that a request was sent with."""
        raise NotImplementedError


class Bearer(_Key):
    """A header with a credential, for ``Client(auth=…)``.

    Args:
        credential: see ``Text``.
        name: the name of the header.
        before: the text before the credential.
    """

    def __init__(self, credential: Text, name: str = "Authorization", before: str = "Bearer ") -> None:
        super().__init__(credential, name)
        self._before = before

    def sign(self, request: Request) -> Request:
        """Return the request with the header."""
        return request._replace(headers={**request.headers, self._name: f"{self._before}{self._credential()}"})

    def _used(self, request: Request) -> str:
        return request.headers.get(self._name, "").removeprefix(self._before)

    def __repr__(self) -> str:
        return f"<{self._name}: {self._before}…>"


class QueryKey(_Key):
    """A credential in the query, ``?NAME=…``, for ``Client(auth=…)``.

    URLs end up in logs of servers and proxies: use a header if the API accepts one. Responses, errors and events show
    no query, and urllib3's DEBUG records lose it.
    """

    def __init__(self, name: str, credential: Text) -> None:
        super().__init__(credential, name)
        hide_queries()

    def sign(self, request: Request) -> Request:
        """Return the request with the key; it replaces one that the URL of a next page contains."""
        parts = urlsplit(request.url)
        pieces = filter(None, parts.query.split("&"))
        others = [piece for piece in pieces if unquote_plus(piece.partition("=")[0]) != self._name]
        query = "&".join([*others, f"{quote_plus(self._name)}={quote_plus(self._credential())}"])
        return request._replace(url=parts._replace(query=query).geturl())

    def _used(self, request: Request) -> str | None:
        return dict(parse_qsl(urlsplit(request.url).query)).get(self._name)

    def __repr__(self) -> str:
        return f"<query {self._name}=…>"


def bearer(credential: Text) -> Bearer:
    """Return ``Authorization: Bearer …`` (RFC 6750)."""
    return Bearer(credential)


def header(name: str, credential: Text) -> Bearer:
    """Return a header whose value is a credential, such as ``X-Api-Key: …``."""
    return Bearer(credential, name, "")


def basic(user: str, password: str) -> Bearer:
    """Return ``Authorization: Basic …`` (RFC 7617)."""
    return Bearer(b64encode(f"{user}:{password}".encode()).decode(), before="Basic ")


def cookie(name: str, credential: Text) -> Bearer:
    """Return ``Cookie: NAME=…`` (RFC 6265), the request's only cookie.

    Raises:
        TapError: a cookie cannot have this name.
    """
    if not name or not all("!" <= char <= "~" and char not in '()<>@,;:\\"/[]?={}' for char in name):
        raise TapError(f"cookie({name!r:.100}): expected a name of letters, digits, - and _")
    return Bearer(credential, "Cookie", f"{name}=")


def query(name: str, credential: Text) -> QueryKey:
    """Return a key in the query, such as ``?api_key=…``."""
    return QueryKey(name, credential)
