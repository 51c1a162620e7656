"""A client for one API: policy, timers, credentials, bounds."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urljoin, urlsplit

import msgspec

from balog.common.errors import ConfigError
from balog.common.http.pool import ClientCertificate
from balog.common.http.urls import check_url
from balog.common.text import one_line
from balog.common.token_bucket import TokenBucket
from balog.tap.errors import SourceError, check_number
from balog.tap.http.authorization import Auth, authorize, repeats, secrets_of
from balog.tap.http.connections import Connections, Request
from balog.tap.http.outcomes import HttpError, Response, endpoint_of, fault_of, is_lost, origin_of
from balog.tap.http.retries import IDEMPOTENT, NOT_PROCESSED, SAFE, Policy
from balog.tap.patterns.concurrency import pause

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5
_MAX_EXCERPT = 200
_encode = msgspec.json.Encoder(decimal_format="number").encode
_PRINTABLE = bytes(range(0x21, 0x7F))


class Client:
    """A client for one server with persistent connections. It is thread-safe.

    Certificates are verified. Credentials are sent only to the server of ``base_url``: a redirect, or the URL of a next
    page, that leads elsewhere is an error. Cookies are kept (RFC 6265). The environment's proxies are used. Each
    request is measured as ``http_request_duration`` with its endpoint and status.

    Args:
        base_url: the URL that paths are appended to, ``https://api.example.com/v2``.
        headers: sent with each request.
        auth: returns the headers with credentials, called before each request; see ``balog.tap.credentials``. If it has
            a method ``refresh``, that is called with these headers after a 401, and the request is repeated once. Or
            it is a ``Signer``.
        timeout: seconds for connecting, and for each read of a response.
        policy: the retry policy; ``Policy(tries=1)`` retries nothing.
        rate: the maximum number of requests a second; None means no limit.
        max_bytes: the maximum size of one decompressed body.
        max_seconds: the maximum time of one response, from the request to its last byte.
        ca_file: a PEM file of the authorities to trust instead of the system's.
        certificate: the client's own certificate, for servers that require one (mutual TLS).

    Attributes:
        base_url, policy: see above.
        connections: sends the requests.

    Raises:
        ConfigError: an invalid URL or one with credentials, or an invalid ``ca_file`` or ``certificate``.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        *,
        timeout: float = 60.0,
        policy: Policy | None = None,
        rate: float | None = None,
        max_bytes: int = 64 << 20,
        max_seconds: float = 600.0,
        ca_file: str | None = None,
        certificate: ClientCertificate | None = None,
    ) -> None:
        self.base_url = _checked(base_url)
        for name, number in {"timeout": timeout, "max_bytes": max_bytes, "max_seconds": max_seconds}.items():
            check_number(f"Client: {name}", number)
        if rate is not None:
            check_number("Client: rate", rate)
        self._headers = {"Accept": "application/json", "User-Agent": "balog-tap", **(headers or {})}
        self._auth = auth
        self.policy = policy or Policy()
        self._limit = TokenBucket(rate, 1) if rate else None
        self._turn = threading.Lock()
        self.connections = Connections(base_url, timeout, max_bytes, max_seconds, ca_file, certificate)
        weakref.finalize(self, self.connections.close)

    def get(self, path: str = "", params: Mapping[str, Any] | None = None, **options: Any) -> Response:
        """Send a GET request; see ``request``."""
        return self.request("GET", path, params, **options)

    def post(self, path: str = "", params: Mapping[str, Any] | None = None, **options: Any) -> Response:
        """Send a POST request; see ``request``."""
        return self.request("POST", path, params, **options)

    def request(
        self,
        method: str,
        path: str = "",
        params: Mapping[str, Any] | None = None,
        *,
        json: Any = None,
        form: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        endpoint: str | None = None,
        is_repeatable: bool | None = None,
        allow: tuple[int, ...] = (),
    ) -> Response:
        """Send a request, and return its response if the status is 2xx.

        Args:
            path: appended to ``base_url``; or a full URL of the same server, such as that of a next page. Spaces and
                non-ASCII characters of a path are percent-encoded.
            params: the query: None is omitted, a list repeats the name, times are ISO 8601.
            json: the body, encoded as JSON.
            form: the body, encoded as a form.
            body: the body as bytes.
            headers: further headers.
            endpoint: the name of the request in logs and metrics; None means the path, with ``{id}`` instead of ids.
            is_repeatable: whether the request can be sent twice; None derives it from the method. If not, it is
                retried only if the server did not process it (425, 429, 503).
            allow: further statuses that are returned.

        Raises:
            HttpError: another status, after all retries.
            SourceError: no response, one that is too large or incomplete, a redirect to another server.
        """
        url = self._url(path, params)
        sent = {**self._headers, **(headers or {})}
        if json is not None:
            body = _encode(json)
            sent.setdefault("Content-Type", "application/json")
        elif form is not None:
            body = urlencode(_pairs(form)).encode()
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        endpoint = endpoint or endpoint_of(url)
        repeatable = method in IDEMPOTENT if is_repeatable is None else is_repeatable
        request = Request(method, url, sent, body, repeatable)

        def can_repeat(error: Any) -> bool:
            may_be_processed = isinstance(error, SourceError) and getattr(error, "status", 0) not in NOT_PROCESSED
            return repeatable or not may_be_processed

        for attempt in self.policy.attempts(endpoint, can_repeat):
            with attempt:
                return self._once(request, endpoint, allow)
        raise AssertionError  # the last attempt raises its error

    def download(
        self,
        path: str,
        file: BinaryIO,
        *,
        max_bytes: int = 16 << 30,
        max_seconds: float = 6 * 3600,
        allow: tuple[int, ...] = (),
    ) -> Response:
        """Write the body of a successful GET to a file, which is empty before each try of the policy.

        Args:
            path: see ``request``.
            file: open for writing.
            max_bytes: the maximum size of the decompressed body.
            max_seconds: the maximum time of one try.
            allow: statuses that are returned like a success; their bodies are in the response.

        Returns:
            The response, with an empty body if it was a success.

        Raises:
            HttpError, SourceError: see ``request``.
        """
        twin = copy.copy(self)
        twin.connections = replace(
            self.connections, max_bytes=max_bytes, max_seconds=max_seconds, file=file, _pool=None
        )
        try:
            return twin.get(path, headers={"Accept": "*/*"}, allow=allow)
        finally:
            twin.close()

    def is_same_server(self, url: str) -> bool:
        """Return whether a URL leads to the server of ``base_url``."""
        try:
            return origin_of(url) == origin_of(self.base_url)
        except ValueError:
            return False

    def close(self) -> None:
        """Close the connections; further requests open new ones."""
        self.connections.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._place}>"

    def _once(self, request: Request, endpoint: str, allow: tuple[int, ...]) -> Response:
        """Send the request, follow redirects, and send it again if credentials had expired."""
        sent, response = self._follow(request, endpoint)
        if response.status not in allow and repeats(self._auth, sent, response.status, response.headers):
            sent, response = self._follow(request, endpoint)
        if 200 <= response.status < 300 or response.status in allow:
            return response
        cookies = [cookie.value or "" for cookie in self.connections.cookies]
        excerpt = _excerpt(response, secrets_of(sent).union(_texts(request.body), cookies))
        raise HttpError(
            f"{request.method} {endpoint} answered {fault_of(response)}{excerpt}",
            response,
            retryable=self.policy.is_retryable(response),
        )

    def _follow(self, request: Request, endpoint: str) -> tuple[Request, Response]:
        """Send a request and follow redirects; return the last request as it was sent, and its response."""
        subject = f"{request.method} {endpoint}"
        for _ in range(_MAX_REDIRECTS + 1):
            self.connections.open()  # may take a second, in which a turn would pass
            self._wait_for_turn()
            sent = authorize(self._auth, request)
            response = self._timed(sent, endpoint, request.url)
            target = response.headers.get("location")
            if response.status not in _REDIRECTS or not target or request.method not in SAFE:
                return sent, response
            request = request._replace(url=self._same_server(request.url, target, f"{subject} redirects"))
        raise SourceError(f"{subject} redirects more than {_MAX_REDIRECTS} times")

    def _timed(self, request: Request, endpoint: str, url: str) -> Response:
        """Send a signed request; ``url`` is without a key that the query of the signed one may contain."""
        from http.client import HTTPException  # these two are imported on the first request

        from balog.log import metrics

        with metrics.http_request_timer(endpoint) as timer:
            try:
                status, headers, data = self.connections.send(request)
            except SourceError as error:
                raise SourceError(
                    f"{request.method} {endpoint}: {error}", retryable=error.retryable, fault=error.reason
                ) from None
            except (OSError, ValueError, HTTPException) as error:
                raise SourceError(
                    f"{request.method} {endpoint}: no response from {self._place}: {fault_of(error)}",
                    retryable=is_lost(error),
                    fault=fault_of(error),
                ) from None
            timer.tags[metrics.Tag.http_status_code] = status
            if status >= 400:
                timer.tags[metrics.Tag.status] = metrics.Status.failed
        return Response(status, headers, data, url)

    def _wait_for_turn(self) -> None:
        if self._limit is not None:
            with self._turn:
                wait = self._limit.take()
            if wait:
                pause(wait)

    def _url(self, path: str, params: Mapping[str, Any] | None) -> str:
        if "://" in path or path.startswith("//"):
            url = self._same_server(self.base_url, path, "the URL leads")
        else:
            url = f"{self.base_url.rstrip('/')}/{quote(path.lstrip('/'), _PRINTABLE)}" if path else self.base_url
        if params and (pairs := _pairs(params)):
            url += ("&" if urlsplit(url).query else "?") + urlencode(pairs)
        return url

    def _same_server(self, base: str, target: str, subject: str) -> str:
        try:
            url = urljoin(base, target)
            is_same = origin_of(url) == origin_of(self.base_url)
        except ValueError:
            raise SourceError(f"{subject} to an invalid URL") from None
        if not is_same:
            raise SourceError(
                f"{subject} away from {self._place}, to a server that must not get these credentials; use "
                "another client for that server"
            )
        return url

    @property
    def _place(self) -> str:
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}"


def _checked(url: str) -> str:
    if not isinstance(url, str):
        raise ConfigError("is not a URL; expected https://HOST…", path="base_url")
    check_url(url, "base_url")
    if urlsplit(url).query:
        raise ConfigError("has a query in it; pass that to the client", path="base_url")
    return url


def _pairs(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = []
    for name, value in params.items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is True or item is False:
                pairs.append((name, "true" if item else "false"))
            elif item is not None:
                pairs.append((name, item.isoformat() if isinstance(item, date) else str(item)))
    return pairs


def _texts(body: bytes | None) -> list[str]:
    """Return the texts in a body, JSON or a form, as they are and as a form encodes them."""
    if not body:
        return []
    try:
        left, texts = [msgspec.json.decode(body)], []
    except (msgspec.DecodeError, RecursionError):
        left, texts = [], [value for _, value in parse_qsl(body.decode("utf-8", "replace"))]
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, list)):
            left += value.values() if isinstance(value, dict) else value
    return [*texts, *map(quote_plus, texts)]


def _excerpt(response: Response, sent: set[str]) -> str:
    """Return the start of the response's text as one line, without values that were sent, which may be secrets."""
    text = response.text[:4096]
    for secret in sorted((word for word in sent if len(word) >= 6), key=len, reverse=True):
        text = text.replace(secret, "…")
    line = one_line(text)[:_MAX_EXCERPT]
    return f": {line}" if line else ""
