"""The outcomes of requests, made by ``requests``, ``httpx``, ``urllib3``, ``urllib`` or this toolkit's client.

None of the libraries is imported: their objects are recognised by their attributes and the names of their types.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from balog.common.backoff import read_retry_after
from balog.tap.errors import SourceError
from balog.tap.records.plain import decode_json

_LOST = {  # by the first part of a class's module; base classes count, too
    "requests": frozenset({"ConnectionError", "Timeout", "ChunkedEncodingError"}),
    "httpx": frozenset({"TransportError"}),
    "httpcore": frozenset({"NetworkError", "TimeoutException", "ProtocolError"}),
    "urllib3": frozenset({"TimeoutError", "ProtocolError", "IncompleteRead", "NewConnectionError", "ProxyError"}),
    "http": frozenset({"BadStatusLine", "IncompleteRead", "RemoteDisconnected"}),
    "botocore": frozenset({"ConnectionError", "HTTPClientError"}),
}
_NEVER = frozenset({"SSLError", "InvalidURL", "UnsupportedProtocol", "CertificateError"})
_EPOCH = 1_000_000_000  # a larger X-RateLimit-Reset is a time, not seconds from now
_MILLISECONDS = 100_000_000_000
_NO_TIME = 10**15


class HttpError(SourceError):
    """A response with an error status.

    Attributes:
        response: a ``Response`` of this toolkit's client, or another library's.
        status: its status.
    """

    def __init__(self, reason: str, response: Any, *, retryable: bool = False) -> None:
        super().__init__(reason, retryable=retryable)
        self.response = response
        self.status = status_of(response) or 0


def status_of(outcome: Any) -> int | None:
    """Return the status of a response, or of an exception that has one; None if there was no response."""
    for thing in (outcome, getattr(outcome, "response", None)):
        for name in ("status_code", "status", "code"):
            status = getattr(thing, name, None)
            if type(status) is int and 100 <= status < 600:
                return status
    return None


def headers_of(outcome: Any) -> Mapping[str, str]:
    """Return the headers by lower-case names; {} if there are none."""
    for thing in (outcome, getattr(outcome, "response", None)):
        headers = getattr(thing, "headers", None)
        if headers is not None and hasattr(headers, "items"):
            return {str(name).lower(): str(value) for name, value in headers.items()}
    return {}


def is_lost(error: BaseException) -> bool:
    """Return whether an exception means that no response came: connecting failed, the connection broke, a timeout.

    A rejected certificate is not one of these, because a retry cannot help.
    """
    for cause in causes_of(error):
        kinds = type(cause).__mro__
        if any(kind.__name__ in _NEVER for kind in kinds):
            return False
    for cause in causes_of(error):
        if isinstance(cause, (ConnectionError, TimeoutError)) or type(cause).__name__ == "gaierror":
            return True
        for kind in type(cause).__mro__:
            if kind.__name__ in _LOST.get(kind.__module__.partition(".")[0], ()):
                return True
    return False


def fault_of(outcome: Any) -> str:
    """Return the cause of a failure in a few words, without text of the server, which may contain secrets."""
    status = status_of(outcome)
    if status is not None:
        from http import HTTPStatus

        try:
            return f"{status} {HTTPStatus(status).phrase}"
        except ValueError:
            return str(status)
    for cause in causes_of(outcome):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    if isinstance(outcome, SourceError) and outcome.fault:
        return outcome.fault
    return type(outcome).__name__


def requested_wait(outcome: Any, now: float | None = None) -> float | None:
    """Return the seconds that the server wants clients to wait; None if it does not say.

    It is ``Retry-After`` (RFC 9110, 10.2.3: seconds, or a date) or, if no requests are left, ``X-RateLimit-Reset`` or
    ``RateLimit-Reset`` as many APIs have it: seconds from now, or since the epoch.

    Args:
        now: seconds since the epoch.
    """
    headers = headers_of(outcome)
    now = time.time() if now is None else now
    if (seconds := read_retry_after(headers.get("retry-after"), now)) is not None:
        return seconds
    if status_of(outcome) != 429 and headers.get("x-ratelimit-remaining", "").strip() != "0":
        return None
    for name in ("x-ratelimit-reset", "ratelimit-reset", "x-rate-limit-reset"):
        at = read_retry_after(headers.get(name), now)
        if at is None or at >= _NO_TIME:
            continue
        if at > _MILLISECONDS:
            at /= 1000
        return max(0.0, at - now if at > _EPOCH else at)
    return None


def endpoint_of(url: str) -> str:
    """Return a URL's path for logs and tags: without host and query, with ``{id}`` instead of ids."""
    path = urlsplit(url).path or "/"
    return "/".join("{id}" if _is_id(part) else part for part in path.split("/"))[:200]


def origin_of(url: str) -> tuple[str, str, int]:
    """Return the server of a URL: scheme, host, port.

    Raises:
        ValueError: it is not a URL.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _is_id(part: str) -> bool:
    digits = sum(char.isdigit() for char in part)
    return part.isdecimal() or (digits >= 3 and len(part) >= 6) or len(part) > 40 or "@" in part or "%40" in part


def causes_of(error: Any) -> list[Any]:
    """Return an exception and those that led to it, at most eight."""
    causes: list[Any] = []
    while isinstance(error, BaseException) and error not in causes and len(causes) < 8:
        causes.append(error)
        reason = getattr(error, "reason", None) or getattr(error, "original_error", None)  # of urllib's and urllib3's
        hidden = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        error = reason if isinstance(reason, BaseException) else hidden
    return causes


@dataclass(repr=False, eq=False)
class Response:
    """A response.

    Attributes:
        status: the status.
        headers: the headers by lower-case names.
        body: the complete, decompressed body.
        url: the URL after redirects.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    url: str

    def json(self) -> Any:
        """Decode the body; see ``balog.tap.records.plain.decode_json`` for its numbers.

        Raises:
            SourceError: it is not JSON.
        """
        try:
            return decode_json(self.body, self._charset)
        except (ValueError, RecursionError):
            kind = self.headers.get("content-type", "no content type")[:80]
            raise SourceError(
                f"{endpoint_of(self.url)} answered {self.status} without JSON in {self._charset.upper()} "
                f"({kind}, {len(self.body)} bytes)"
            ) from None

    @property
    def text(self) -> str:
        """The body as text, in the charset of the response; UTF-8 if it has none."""
        try:
            return self.body.decode(self._charset, "replace")
        except (LookupError, ValueError):  # also Python's codecs that are not charsets, such as idna
            return self.body.decode("utf-8", "replace")

    @property
    def _charset(self) -> str:
        _, _, charset = self.headers.get("content-type", "").lower().partition("charset=")
        return charset.split(";")[0].strip(" \"'")[:40] or "utf-8"

    def __repr__(self) -> str:
        return f"<Response {self.status} of {endpoint_of(self.url)}, {len(self.body)} bytes>"
