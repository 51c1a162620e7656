"""A client for one API: policy, timers, credentials, bounds."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urljoin, urlsplit

import msgspec

from balog import metrics
from balog.errors import ConfigError
from balog.tap.errors import SourceError
from balog.tap.http.connections import Connections, Request
from balog.tap.http.outcomes import HttpError, endpoint_of, fault_of, is_lost, origin_of
from balog.tap.http.response import Response
from balog.tap.http.retrying import AGAIN, NOT_DONE, SAFE, Policy
from balog.tap.patterns.pausing import pause

__all__ = ["Client"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5
_MAX_EXCERPT = 200
_PRINTABLE = bytes(range(0x21, 0x7F))


class Client:
    """Asks one server over kept connections; threads may share it.

    Certificates are verified. Credentials go to the server of ``base_url`` and to no other: a redirect, or a next
    page's URL, that leads elsewhere is an error. The environment's proxies are used. Each request is timed as
    ``http_request_duration`` with its endpoint and status.

    Args:
        base_url: where paths begin, ``https://api.example.com/v2``.
        headers: sent with each request.
        auth: gives the headers with credentials, asked before each request; see ``balog.tap.credentials``. When it has
            a method ``refresh``, that is called with these headers when the answer is 401, and the request is made
            once more.
        timeout: seconds for connecting, and for each wait for a piece of an answer.
        policy: what is tried again; ``Policy(tries=1)`` tries nothing again.
        rate: requests a second at most; None for no bound.
        max_bytes: of one answer's body, unpacked.
        max_seconds: for one answer, from the request to its last byte.
        ca_file: a PEM file of the authorities to trust instead of the system's.

    Raises:
        ConfigError: a URL that is none or has credentials in it, a ``ca_file`` that cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        auth: Callable[[], Mapping[str, str]] | None = None,
        *,
        timeout: float = 60.0,
        policy: Policy | None = None,
        rate: float | None = None,
        max_bytes: int = 64 << 20,
        max_seconds: float = 600.0,
        ca_file: str | None = None,
    ) -> None:
        self._base = _checked(base_url)
        self._headers = {"Accept": "application/json", "User-Agent": "balog-tap", **(headers or {})}
        self._auth = auth
        self._policy = policy or Policy()
        self._space = 1 / rate if rate else 0.0
        self._next_at = 0.0
        self._turn = threading.Lock()
        self._connections = Connections(timeout, max_bytes, max_seconds, ca_file)
        weakref.finalize(self, self._connections.close)

    def get(self, path: str = "", params: Mapping[str, Any] | None = None, **options: Any) -> Response:
        """Ask for a path; see ``request``."""
        return self.request("GET", path, params, **options)

    def post(self, path: str = "", params: Mapping[str, Any] | None = None, **options: Any) -> Response:
        """Post to a path; see ``request``."""
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
        """Make a request; give any answer of 2xx.

        Args:
            path: below ``base_url``, or a whole URL of the same server, as APIs give for the next page. In a path,
                spaces and characters beyond ASCII are percent-encoded.
            params: the query's: None is left out, a list is the name again and again, times are ISO 8601.
            json: a body, encoded.
            form: a body, as a form is.
            body: a body as it is.
            headers: of this request.
            endpoint: its name in logs and metrics; else the path, with ``{id}`` for what looks like one.
            is_repeatable: whether doing it twice does no harm; told by the method when None. What is not repeatable is
                tried again only where the server says that it did nothing (425, 429, 503).
            allow: further statuses that are given back.

        Raises:
            HttpError: another status, when the policy has no further try.
            SourceError: no answer, one that is too large or breaks off, a redirect to another server.
        """
        url = self._url(path, params)
        sent = {**self._headers, **(headers or {})}
        if json is not None:
            body = msgspec.json.encode(json)
            sent.setdefault("Content-Type", "application/json")
        elif form is not None:
            body = urlencode(_pairs(form)).encode()
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        endpoint = endpoint or endpoint_of(url)
        repeatable = method in AGAIN if is_repeatable is None else is_repeatable
        for attempt in self._policy.attempts(endpoint):
            with attempt:
                try:
                    answer = self._once(method, url, sent, body, endpoint, repeatable, allow)
                except HttpError as error:
                    if not repeatable and error.status not in NOT_DONE:
                        attempt.is_last = True
                    raise
                except SourceError:
                    attempt.is_last = not repeatable
                    raise
                return answer
        raise AssertionError  # the last attempt's error came out of its block

    def close(self) -> None:
        """Close the connections; asking again opens new ones."""
        self._connections.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._place}>"

    def _once(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes | None,
        endpoint: str,
        repeatable: bool,
        allow: tuple[int, ...],
    ) -> Response:
        """Make one try: with the redirects that it needs, and once more when credentials were out of date."""
        for is_second in (False, True):
            granted = dict(self._auth()) if self._auth else {}
            answer = self._follow(method, url, {**headers, **granted}, body, endpoint, repeatable)
            refresh = getattr(self._auth, "refresh", None)
            if answer.status == 401 and refresh and not is_second and 401 not in allow:
                refresh(granted)
                continue
            break
        if 200 <= answer.status < 300 or answer.status in allow:
            return answer
        said = _excerpt(answer, [*headers.values(), *granted.values(), *_texts(body)], url)
        raise HttpError(
            f"{method} {endpoint} answered {fault_of(answer)}{said}", answer, retryable=self._policy.wants(answer)
        )

    def _follow(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, endpoint: str, repeatable: bool
    ) -> Response:
        for _ in range(_MAX_REDIRECTS + 1):
            self._wait_for_turn()
            answer = self._timed(Request(method, url, headers, body, repeatable), endpoint)
            target = answer.headers.get("location")
            if answer.status not in _REDIRECTS or not target or method not in SAFE:
                return answer
            url = self._same_server(url, target, f"{method} {endpoint} redirects")
        raise SourceError(f"{method} {endpoint} redirects more than {_MAX_REDIRECTS} times")

    def _timed(self, request: Request, endpoint: str) -> Response:
        from http.client import HTTPException  # not before something is asked for

        with metrics.http_request_timer(endpoint) as timer:
            try:
                status, headers, data = self._connections.send(request)
            except SourceError as error:
                raise SourceError(
                    f"{request.method} {endpoint}: {error}", retryable=error.retryable, fault=error.reason
                ) from None
            except (OSError, ValueError, HTTPException) as error:
                raise SourceError(
                    f"{request.method} {endpoint}: no answer from {self._place}: {fault_of(error)}",
                    retryable=is_lost(error),
                    fault=fault_of(error),
                ) from None
            timer.tags[metrics.Tag.http_status_code] = status
            if status >= 400:
                timer.tags[metrics.Tag.status] = metrics.Status.failed
        return Response(status, headers, data, request.url)

    def _wait_for_turn(self) -> None:
        if self._space:
            with self._turn:
                now = time.monotonic()
                at = max(self._next_at, now)
                self._next_at = at + self._space
            if at > now:
                pause(at - now)

    def _url(self, path: str, params: Mapping[str, Any] | None) -> str:
        if "://" in path or path.startswith("//"):
            url = self._same_server(self._base, path, "the URL to ask leads")
        else:
            url = f"{self._base.rstrip('/')}/{quote(path.lstrip('/'), _PRINTABLE)}" if path else self._base
        if params and (pairs := _pairs(params)):
            url += ("&" if urlsplit(url).query else "?") + urlencode(pairs)
        return url

    def _same_server(self, base: str, said: str, what: str) -> str:
        try:
            url = urljoin(base, said)
            is_same = origin_of(url) == origin_of(self._base)
        except ValueError:
            raise SourceError(f"{what} to what is no URL") from None
        if not is_same:
            raise SourceError(
                f"{what} away from {self._place}, to a server that must not get these credentials; make another client "
                "for that one"
            )
        return url

    @property
    def _place(self) -> str:
        parts = urlsplit(self._base)
        return f"{parts.scheme}://{parts.netloc}"


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        is_good = False
    if not is_good or not all("!" <= char <= "~" for char in url):
        raise ConfigError("is not a URL; want https://HOST…", path="base_url")
    if "@" in parts.netloc or parts.fragment or parts.query:
        raise ConfigError("has credentials, a query or a fragment in it; give those to the client", path="base_url")
    return url


def _pairs(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for name, value in params.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True or one is False:
                found.append((name, "true" if one else "false"))
            elif one is not None:
                found.append((name, one.isoformat() if isinstance(one, date) else str(one)))
    return found


def _texts(body: bytes | None) -> list[str]:
    """Give the values in a body, JSON or a form, as they were said and as a form has them."""
    if not body:
        return []
    try:
        left, found = [msgspec.json.decode(body)], []
    except (msgspec.DecodeError, RecursionError):
        left, found = [], [value for _, value in parse_qsl(body.decode("utf-8", "replace"))]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, (dict, list)):
            left += value.values() if isinstance(value, dict) else value
    return [*found, *map(quote_plus, found)]


def _excerpt(answer: Response, sent: list[str], url: str) -> str:
    """Give the beginning of what the server said as one line, without what was sent, which it may say back."""
    text = answer.text[:4096]
    secrets = {word for value in sent for word in (value, value.rpartition(" ")[2])}
    secrets |= {piece.partition("=")[2] for piece in urlsplit(url).query.split("&")} | {url}
    for secret in sorted((word for word in secrets if len(word) >= 6), key=len, reverse=True):
        text = text.replace(secret, "…")
    said = " ".join("".join(char if char.isprintable() else " " for char in text).split())[:_MAX_EXCERPT]
    return f": {said}" if said else ""
