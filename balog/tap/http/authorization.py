"""How a client authorizes its requests: by headers that a function returns, or by a signer of whole requests."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from balog.tap.http.connections import Request


class Signer(Protocol):
    """Authorization that depends on the whole request: a signature, a key in the query."""

    def sign(self, request: Request) -> Request:
        """Return the request with authorization. Called for each try and each redirect."""

    def rejected(self, request: Request, status: int, headers: Mapping[str, str]) -> bool:
        """Return whether to sign and send the request again, after a response that rejects it.

        It is called for the first such response of a request, with a status from 400 to 403.

        Args:
            request: as it was sent.
            headers: those of the response, by lower-case names.
        """


Auth: TypeAlias = "Callable[[], Mapping[str, str]] | Signer"
"""A function that returns headers, with an optional method ``refresh(headers)``; or a ``Signer``."""

_REJECTIONS = range(400, 404)


def authorize(auth: Auth | None, request: Request) -> Request:
    """Return the request with authorization."""
    if auth is None:
        return request
    if hasattr(auth, "sign"):
        return auth.sign(request)
    granted = dict(auth())
    return request._replace(headers={**request.headers, **granted}, granted=granted)


def repeats(auth: Auth | None, request: Request, status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a rejected request is authorized and sent again, once; refresh the credential if so.

    Args:
        request: as it was sent.
        headers: those of the response, by lower-case names.
    """
    if auth is None or status not in _REJECTIONS:
        return False
    if hasattr(auth, "rejected"):
        return auth.rejected(request, status, headers)
    refresh = getattr(auth, "refresh", None)
    if status != 401 or refresh is None:
        return False
    refresh(request.granted)
    return True


def secrets_of(request: Request) -> set[str]:
    """Return the texts of a request's headers and URL that may be secrets, and their parts."""
    secrets = {request.url}
    for value in request.headers.values():
        first, *others = re.split(r"[\s;,]+", value)  # a first word of several is a scheme, such as Bearer
        for word in others or [first]:
            secrets |= {word, word.partition("=")[2].strip('"')}
        secrets.add(value)
    query = urlsplit(request.url).query
    secrets |= {piece.partition("=")[2] for piece in query.split("&")}
    return secrets | {value for _, value in parse_qsl(query)}


class _HiddenQuery(logging.Filter):
    """Removes queries from urllib3's DEBUG records of requests, because they may contain a key."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_without_query(value) for value in record.args)
        return True


def hide_queries() -> None:
    """Keep queries out of urllib3's DEBUG records in this process. Further calls do nothing."""
    logger = logging.getLogger("urllib3.connectionpool")
    if not any(isinstance(each, _HiddenQuery) for each in logger.filters):
        logger.addFilter(_HiddenQuery())


def _without_query(value: Any) -> Any:
    is_target = isinstance(value, str) and "?" in value and value.startswith(("/", "http://", "https://"))
    return f"{value.partition('?')[0]}?…" if is_target else value
