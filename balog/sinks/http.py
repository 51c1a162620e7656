"""The one HTTP client of the sinks: bounded, verified, never redirected, and its failures told apart."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Meta

from balog.errors import ConfigError, MissingExtraError
from balog.retry_after import read_retry_after
from balog.sinks.base import SinkError

__all__ = [
    "CaFile",
    "HttpClient",
    "HttpError",
    "Response",
    "Timeout",
    "Url",
    "check_headers",
    "check_url",
    "failure",
    "open_pool",
]

Url = Annotated[str, Meta(min_length=8, max_length=2000, description="http:// or https://, without a password in it.")]
Timeout = Annotated[float, Meta(gt=0, le=600, description="Seconds for connecting, and for each wait for an answer.")]
CaFile = Annotated[str, Meta(min_length=1, description="PEM file of the authorities to trust; the system's if none.")]

_MAX_ANSWER = 16 << 20
_MAX_EXCERPT = 200
_MAX_RETRY_AFTER = 3600.0
_EVENTS_FAULT = frozenset({400, 413, 415, 422})
_NO_TOKEN = frozenset('"(),/:;<=>?@[\\]{}')  # RFC 9110, 5.6.2


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
        MissingExtraError: urllib3 is not installed.
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
        """Read the body of an answer; what is left of it is never read."""
        return _read(answer)

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


def check_url(url: str, path: str = "url") -> None:
    """Refuse what is no http(s) URL, and one with credentials in it. No message has any of it.

    Raises:
        ConfigError: at ``path``.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("is not a URL; want http://HOST… or https://HOST…", path=path) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError("is not a URL; want http://HOST… or https://HOST…", path=path)
    if "@" in parts.netloc:
        raise ConfigError("has credentials in the URL; give them by the environment or a file", path=path)
    if parts.fragment or not all("!" <= char <= "~" for char in url):
        raise ConfigError("has a #, a space or a letter beyond ASCII, which must be written as %XX or xn--…", path=path)


def parse_retry_after(value: str | None) -> float | None:
    """Read a ``Retry-After``: at most an hour, None when it is none."""
    seconds = read_retry_after(value)
    return None if seconds is None else min(seconds, _MAX_RETRY_AFTER)


def open_pool(url: str, timeout: float, ca_file: str | None) -> Any:
    """Give urllib3's pool for a URL: certificates verified, the environment's proxy used.

    Raises:
        ConfigError: a ``ca_file`` that is none, or a proxy that is none.
        MissingExtraError: urllib3 is not installed.
    """
    try:
        import urllib3
    except ImportError:
        raise MissingExtraError("HTTP", "sinks") from None
    import ssl

    options: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=timeout, read=timeout),
        "maxsize": 4,
        "cert_reqs": "CERT_REQUIRED",
    }
    if urlsplit(url).scheme == "https":
        try:
            options["ssl_context"] = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{ca_file}: {getattr(error, 'strerror', None) or error}", path="ca_file") from None
    if proxy := _proxy(url):
        return urllib3.ProxyManager(proxy[0], proxy_headers=proxy[1], **options)
    return urllib3.PoolManager(**options)


def _proxy(url: str) -> tuple[str, dict[str, str]] | None:
    """Give the URL and the headers of the proxy that the environment names for this URL, if it names one."""
    from urllib3.util import make_headers

    parts = urlsplit(url)
    from urllib.request import getproxies, proxy_bypass  # brings http.client and ssl

    proxies: Mapping[str, str] = getproxies()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named or proxy_bypass(parts.hostname or ""):
        return None
    try:
        proxy = urlsplit(named if "://" in named else f"http://{named}")
        place, port = proxy.hostname or "", proxy.port or (443 if proxy.scheme == "https" else 80)
    except ValueError:
        proxy, place, port = urlsplit(""), "", 0
    if proxy.scheme not in ("http", "https") or not place:
        raise ConfigError(
            f"the environment's proxy for {parts.scheme} is not http://HOST:PORT; correct {parts.scheme}_proxy or "
            "all_proxy, or name the host in no_proxy",
            path="url",
        )
    headers = {}
    if proxy.username is not None:
        headers = make_headers(proxy_basic_auth=f"{unquote(proxy.username)}:{unquote(proxy.password or '')}")
    return f"{proxy.scheme}://{f'[{place}]' if ':' in place else place}:{port}", headers


def check_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Check the names and values of headers, and return the headers.

    Raises:
        ConfigError: at ``headers``, a name or a value has characters that HTTP does not allow.
    """
    for name, value in headers.items():
        if not name or not all("!" <= char <= "~" and char not in _NO_TOKEN for char in name):
            raise ConfigError(f"{name!r} is not a header's name", path="headers")
        if not all(" " <= char <= "~" for char in value):
            raise ConfigError(f"the value of {name} has letters that no header may have", path="headers")
    return headers


def _secrets(url: str, headers: Mapping[str, str], secrets: Sequence[str]) -> list[str]:
    """Give what must not be said, the longest first: these, headers, what may be a key in the URL."""
    parts = urlsplit(url)
    found = set(secrets)
    found |= {word for value in headers.values() for word in (value, value.rpartition(" ")[2])}
    found |= {segment for segment in parts.path.split("/") if len(segment) >= 16}
    found |= {value for _, value in parse_qsl(parts.query)} | {parts.query}
    return sorted((text for text in found if len(text) >= 4), key=len, reverse=True)


def _read(answer: Any) -> bytes:
    """Read an answer's body, at most 16 MiB of it, also when it comes compressed though nobody asked for that.

    urllib3 unpacks without a bound before 2.6, so it is not asked to.

    Raises:
        _BrokenOff: it ended before its end.
    """
    size = "" if "Transfer-Encoding" in answer.headers else answer.headers.get("Content-Length", "")
    data: bytes = answer.read(_MAX_ANSWER, decode_content=False)
    if size.isdecimal() and len(data) < min(int(size), _MAX_ANSWER):
        raise _BrokenOff
    if answer.headers.get("Content-Encoding", "").lower() in ("gzip", "deflate"):
        with suppress(zlib.error):
            return zlib.decompressobj(47).decompress(data, _MAX_ANSWER)
    return data


class _BrokenOff(OSError):
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
