"""The one HTTP client of the sinks: bounded, verified, never redirected, and its failures told apart."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from balog.errors import SinkError
from balog.http.body import PACKINGS, Unpacker
from balog.http.pool import open_pool
from balog.http.urls import check_headers, check_url
from balog.retry_after import read_retry_after

__all__ = ["HttpClient", "HttpError", "Response", "failure", "parse_retry_after"]

_MAX_ANSWER = 16 << 20
_MAX_EXCERPT = 200
_MAX_RETRY_AFTER = 3600.0
_EVENTS_FAULT = frozenset({400, 413, 415, 422})


class Response(NamedTuple):
    """An answer: its status, and at most 16 MiB of its body."""

    status: int
    body: bytes


class HttpError(SinkError):
    """An answer that is no success, for a sink that knows more of this server's answers than their status.

    Attributes:
        answer: what came.
    """

    def __init__(self, reason: str, answer: Response, *, retryable: bool, retry_after: float | None) -> None:
        super().__init__(reason, retryable=retryable, retry_after=retry_after)
        self.answer = answer


class HttpClient:
    """Posts to one server over kept connections. Certificates are verified, redirects are errors.

    Args:
        url: where the paths that are posted to begin; with the path "" it is taken as it is.
        headers: sent with every request; credentials belong here. No error says any of them, also when the answer does.
        timeout: seconds for connecting, and for each wait for an answer.
        ca_file: the authorities to trust instead of the system's.
        is_gzipped: whether bodies go compressed.
        secrets: what bodies hold and no error may say.
        pool: asked in the place of a pool of its own (``open_pool``); the environment's proxy, ``timeout`` and
            ``ca_file`` are then that one's business.

    Raises:
        ConfigError: a URL that is none or has credentials in it, a ``ca_file`` that is none, a header that no request
            can have, a proxy in the environment that cannot be used.
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
    ) -> Response:
        """Post a body; give any answer of 2xx.

        Raises:
            SinkError: no answer, or another status (``HttpError``). Statuses that find fault with the events (400, 413,
                415, 422) are not retryable; every other one is, and keeps to the answer's ``Retry-After``.
        """
        sent = {**self._headers, "Content-Type": content_type, **(headers or {})}
        if self._is_gzipped:
            sent["Content-Encoding"] = "gzip"
            body = gzip.compress(body, 5)
        return self.request("POST", path, body, sent, timeout)

    def request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float | None = None
    ) -> Response:
        """Send any request, with these headers as they are and this ``timeout`` if one is given; see ``post``."""
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
            finally:
                # What is left unread would come first in the connection's next answer.
                answer.release_conn() if answer.isclosed() else answer.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise SinkError(f"{self.place}: {failure(error)}") from None
        if 200 <= answer.status < 300:
            return Response(answer.status, data)
        said = self._excerpt(f"{answer.status} {answer.reason or ''}".encode())
        if 300 <= answer.status < 400:
            said += ", a redirect, which is not followed; is the URL right?"
        elif excerpt := self._excerpt(data):
            said += f": {excerpt}"
        raise HttpError(
            f"{self.place} answered {said}",
            Response(answer.status, data),
            retryable=answer.status not in _EVENTS_FAULT,
            retry_after=parse_retry_after(answer.headers.get("Retry-After")),
        )

    def probe(self, path: str = "", method: str = "HEAD") -> None:
        """See whether the server is there and takes the credentials, without giving it anything.

        Raises:
            SinkError: it does not answer, or refuses who asks (401, 403, 407), or is out of order (5xx but 501). What
                else it answers is its own affair.
        """
        try:
            self.request(method, path, None, self._headers)
        except HttpError as error:
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
        """Give the beginning of what a server said as one line, without the secrets that it may say back."""
        text = data[:4096].decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:_MAX_EXCERPT]


def parse_retry_after(value: str | None) -> float | None:
    """Read a ``Retry-After``: at most an hour, None when it is none."""
    seconds = read_retry_after(value)
    return None if seconds is None else min(seconds, _MAX_RETRY_AFTER)


def _secrets(url: str, headers: Mapping[str, str], secrets: Sequence[str]) -> list[str]:
    """Give what must not be said, the longest first: these, headers, what may be a key in the URL."""
    parts = urlsplit(url)
    found = set(secrets)
    found |= {word for value in headers.values() for word in (value, value.rpartition(" ")[2])}
    found |= {segment for segment in parts.path.split("/") if len(segment) >= 16}
    found |= {value for _, value in parse_qsl(parts.query)} | {parts.query}
    return sorted((text for text in found if len(text) >= 4), key=len, reverse=True)


class _BrokenOffError(OSError):
    """An answer that ended before its end."""


def failure(error: Exception) -> str:
    """Say why there was no answer, without the URL, which may hold a key."""
    import urllib3

    kinds = (
        (urllib3.exceptions.NewConnectionError, "cannot connect"),
        (urllib3.exceptions.ConnectTimeoutError, "no connection in time"),
        (urllib3.exceptions.ReadTimeoutError, "no answer in time"),
        (urllib3.exceptions.SSLError, "the certificate or TLS was refused"),
        (urllib3.exceptions.ProxyError, "the proxy failed"),
    )
    said = next((text for kind, text in kinds if isinstance(error, kind)), "the connection broke")
    for cause in _chain(error):
        detail = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None)
        if detail is None and str(cause).startswith("Tunnel connection failed"):
            detail = str(cause)  # http.client's own words for a proxy that answers with an error
        if detail:
            return f"{said}: {detail}"
    return said


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(8):
        if error is None:
            return
        yield error
        error = getattr(error, "original_error", None) or error.__cause__ or error.__context__
