"""A key in the query of each request."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, quote_plus, unquote_plus, urlsplit

from balog.tap.credentials.headers import Text, shared
from balog.tap.http.authorization import hide_queries
from balog.tap.http.connections import Request


class QueryKey:
    """A credential in the query, ``?NAME=…``, for ``Client(auth=…)``; refreshed if the source rejects it.

    URLs end up in logs of servers and proxies: use a header if the API accepts one. Responses, errors and events show
    no query, and urllib3's DEBUG records lose it.
    """

    def __init__(self, name: str, credential: Text) -> None:
        self._name = name
        self._credential = shared(credential)
        hide_queries()

    def sign(self, request: Request) -> Request:
        """Return the request with the key; it replaces one that the URL of a next page contains."""
        parts = urlsplit(request.url)
        others = [piece for piece in parts.query.split("&") if piece and _name_of(piece) != self._name]
        query = "&".join([*others, f"{quote_plus(self._name)}={quote_plus(self._credential())}"])
        return request._replace(url=parts._replace(query=query).geturl())

    def rejected(self, request: Request, status: int, headers: Mapping[str, str]) -> bool:
        """Refresh the credential after a 401, if it can be refreshed."""
        refresh = getattr(self._credential, "refresh", None)
        if status != 401 or refresh is None:
            return False
        refresh(dict(parse_qsl(urlsplit(request.url).query)).get(self._name))
        return True

    def __repr__(self) -> str:
        return f"<query {self._name}=…>"


def query(name: str, credential: Text) -> QueryKey:
    """Return a key in the query, such as ``?api_key=…``."""
    return QueryKey(name, credential)


def _name_of(piece: str) -> str:
    return unquote_plus(piece.partition("=")[0])
