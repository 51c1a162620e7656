"""The HTTP client of sinks and of the event service's clients: bounded, verified, without redirects."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from balog.common.backoff import read_retry_after
from balog.common.errors import SinkError
from balog.common.http.body import PACKINGS, Unpacker
from balog.common.http.pool import open_pool
from balog.common.http.urls import check_headers, check_url
from balog.common.text import one_line

_MAX_ANSWER = 16 << 20
_MAX_EXCERPT = 200
_MAX_RETRY_AFTER = 3600.0
EVENTS_FAULT = frozenset({400, 413, 415, 422})
"""Statuses by which a server rejects the events of a request: without them, it may take others."""


class HttpResponse(NamedTuple):
    """An answer's status, and at most 16 MiB of its body."""

    status: int
    body: bytes


class HttpStatusError(SinkError):
    """An answer whose status is not 2xx, for callers that interpret the body.

    Attributes:
        answer: the status and the body.
    """

    def __init__(self, reason: str, answer: HttpResponse, *, retryable: bool, retry_after: float | None) -> None:
        super().__init__(reason, retryable=retryable, retry_after=retry_after)
        self.answer = answer


class HttpClient:
    """Sends requests to one server over kept connections. Certificates are verified, redirects are errors.

    Args:
        url: the base URL; requests with the path "" go to exactly this URL.
        headers: sent with every request; put credentials here. No error shows them, even if the answer repeats them.
        timeout: seconds for connecting, and for each wait for an answer.
        ca_file: a PEM file of the authorities to trust instead of the system's.
        is_gzipped: compress bodies.
        secrets: texts in bodies that no error may show.
        pool: a pool to use instead of ``open_pool``'s; ``timeout``, ``ca_file`` and the environment's proxy are then
            ignored.

    Raises:
        ConfigError: not a URL, or one with credentials; a ``ca_file``, a header or the environment's proxy that cannot
            be used.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        ca_file: str | None = None,
        is_gzipped: bool = False,
        secrets: Sequence[str] = (),
        pool: Any = None,
    ) -> None:
        check_url(url)
        self._url = url
        self._headers = dict(check_headers(headers or {}))
        self._has_credentials = bool(headers)
        if "user-agent" not in {name.lower() for name in self._headers}:
            self._headers["User-Agent"] = "balog"
        self._secrets = _secrets(url, headers or {}, secrets)
        self._is_gzipped = is_gzipped
        self._pool = pool if pool is not None else open_pool(url, timeout, ca_file)

    def post(
        self,
        path: str,
        body: bytes,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> HttpResponse:
        """Post a body and return the answer, whose status is 2xx.

        Raises:
            SinkError: no answer, or another status (``HttpStatusError``). Statuses that reject the events (400, 413,
                415, 422) are not retryable; every other one is, after the answer's ``Retry-After``.
        """
        sent = {**self._headers, "Content-Type": content_type, **(headers or {})}
        if self._is_gzipped:
            sent["Content-Encoding"] = "gzip"
            body = gzip.compress(body, 5)
        return self.request("POST", path, body, sent, timeout)

    def get(self, path: str) -> HttpResponse:
        """Return the answer to a GET request; see ``post``."""
        return self.request("GET", path, None, self._headers)

    def request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float | None = None
    ) -> HttpResponse:
        """Send a request with exactly these headers; see ``post``."""
        import urllib3

        url = self._url.rstrip("/") + path if path else self._url
        more = {} if timeout is None else {"timeout": timeout}
        try:
            answer = self._pool.request(
                method,
                url,
                body=body,
                headers=dict(headers),
                redirect=False,
                retries=False,
                preload_content=False,
                **more,
            )
            try:
                data = b"" if method == "HEAD" else self._read(answer)
                if not answer.headers:  # a status line or a header that was cut looks like a whole answer
                    raise urllib3.exceptions.ProtocolError
            finally:
                # Unread bytes would be taken for the beginning of the connection's next answer.
                answer.release_conn() if answer.isclosed() else answer.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise SinkError(f"{self.place}: {describe_failure(error)}") from None
        if 200 <= answer.status < 300:
            return HttpResponse(answer.status, data)
        text = self._excerpt(f"{answer.status} {answer.reason or ''}".encode())
        if 300 <= answer.status < 400:
            text += ", a redirect, which is not followed; is the URL right?"
        elif excerpt := self._excerpt(data):
            text += f": {excerpt}"
        if answer.status in (401, 403) and self._has_credentials:
            text += "; are the credentials right, and those of this server?"
        raise HttpStatusError(
            f"{self.place} answered {text}",
            HttpResponse(answer.status, data),
            retryable=answer.status not in EVENTS_FAULT,
            retry_after=read_retry_after(answer.headers.get("Retry-After"), longest=_MAX_RETRY_AFTER),
        )

    def probe(self, path: str = "", method: str = "HEAD") -> None:
        """Check that the server answers and accepts the credentials, without sending it anything.

        Raises:
            SinkError: no answer, refused credentials (401, 403, 407), or a server error (5xx except 501). Other
                statuses are ignored.
        """
        try:
            self.request(method, path, None, self._headers)
        except HttpStatusError as error:
            status = error.answer.status
            if status in (401, 403, 407) or (status >= 500 and status != 501):
                raise

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _read(self, answer: Any) -> bytes:
        """Read an answer's body, at most 16 MiB of it, also when it comes packed though nobody asked for that."""
        size = "" if "Transfer-Encoding" in answer.headers else answer.headers.get("Content-Length", "")
        data: bytes = answer.read(_MAX_ANSWER, decode_content=False)
        if size.isdecimal() and len(data) < min(int(size), _MAX_ANSWER):
            raise _BrokenOffError
        if answer.headers.get("Content-Encoding", "").lower() in PACKINGS:
            with suppress(zlib.error):
                return Unpacker().add(data, _MAX_ANSWER)
        return data

    @property
    def place(self) -> str:
        """``http://HOST:PORT``, for messages to people."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc}"

    def _excerpt(self, data: bytes) -> str:
        """Return the beginning of an answer as one line, with secrets that the server repeats masked."""
        text = data[:4096].decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return one_line(text)[:_MAX_EXCERPT]


def _secrets(url: str, headers: Mapping[str, str], secrets: Sequence[str]) -> list[str]:
    """Return the texts that no error may show, longest first: ``secrets``, headers, and possible keys in the URL."""
    parts = urlsplit(url)
    texts = set(secrets)
    texts |= {word for value in headers.values() for word in (value, value.rpartition(" ")[2])}
    texts |= {segment for segment in parts.path.split("/") if len(segment) >= 16}
    texts |= {value for _, value in parse_qsl(parts.query)} | {parts.query}
    return sorted((text for text in texts if len(text) >= 4), key=len, reverse=True)


class _BrokenOffError(OSError):
    """The server ended an answer before its announced size."""


def describe_failure(error: Exception) -> str:
    """Return why there was no answer, without the URL, which may have a key in it."""
    import urllib3

    kinds = (
        (urllib3.exceptions.NewConnectionError, "cannot connect"),
        (urllib3.exceptions.ConnectTimeoutError, "no connection in time"),
        (urllib3.exceptions.ReadTimeoutError, "no answer in time"),
        (urllib3.exceptions.SSLError, "the certificate or TLS was refused"),
        (urllib3.exceptions.ProxyError, "the proxy failed"),
    )
    summary = next((text for kind, text in kinds if isinstance(error, kind)), "the connection broke")
    for cause in _chain(error):
        detail = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None)
        if detail is None and str(cause).startswith("Tunnel connection failed"):
            detail = str(cause)  # http.client's own words for a proxy that answers with an error
        if detail:
            return f"{summary}: {detail}"
    return summary


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(8):
        if error is None:
            return
        yield error
        error = getattr(error, "original_error", None) or error.__cause__ or error.__context__
