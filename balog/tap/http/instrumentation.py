"""Sessions of ``requests`` and ``httpx`` that measure and retry their requests; neither library is imported."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from balog.tap.errors import TapError
from balog.tap.http.authorization import Auth, authorize, repeats
from balog.tap.http.connections import Request
from balog.tap.http.outcomes import endpoint_of, headers_of, is_lost, origin_of, status_of
from balog.tap.http.retries import IDEMPOTENT, NOT_PROCESSED, Policy

_Session = TypeVar("_Session")


def instrument(
    session: _Session,
    policy: Policy | None = None,
    *,
    auth: Auth | None = None,
    timeout: float = 60.0,
) -> _Session:
    """Make a session do what ``Client`` does: measure requests, retry failures, refresh credentials after a 401.

    Responses and exceptions are the library's own, and those of the last try are returned or raised as usual. A request
    whose body can be read only once is not retried. A request with a method that is not idempotent is retried only if
    the server did not process it (425, 429, 503).

    Args:
        session: a ``requests.Session``, an ``httpx.Client``, or another object with ``send(request, …)``.
        policy: the retry policy; None means ``Policy()``.
        auth: see ``Client``; its headers are removed when a redirect leads to another server.
        timeout: the default timeout in seconds; ``requests`` has none.

    Returns:
        The same session.

    Raises:
        TapError: it has no ``send``, or is instrumented already.
    """
    send = getattr(session, "send", None)
    if not callable(send) or getattr(send, "is_instrumented", False):
        raise TapError(f"instrument({type(session).__name__}): want a session with send() that is not instrumented")
    sender = _Sender(send, policy or Policy(), auth, timeout if _is_of(session, "requests") else None)
    session.send = sender  # type: ignore[attr-defined]
    hooks = getattr(session, "event_hooks", None)
    if isinstance(hooks, dict):  # httpx follows redirects by itself
        hooks["request"] = [*hooks.get("request", ()), sender.forget]
    return session


@dataclass
class _Sender:
    send: Callable[..., Any]
    policy: Policy
    auth: Auth | None
    timeout: float | None
    _inner: threading.local = field(default_factory=threading.local)
    is_instrumented: ClassVar[bool] = True

    def __call__(self, request: Any, **options: Any) -> Any:
        if getattr(self._inner, "is_in", False):  # requests sends redirected requests with send, too
            self.forget(request)
            return self.send(request, **options)
        if self.timeout is not None and options.get("timeout") is None:
            options["timeout"] = self.timeout
        method, endpoint = str(request.method).upper(), endpoint_of(str(request.url))
        can_repeat = _has_whole_body(request)
        for attempt in self.policy.attempts(endpoint):
            with attempt:
                try:
                    response = self._authorized(request, options, endpoint, can_repeat)
                except Exception as error:
                    attempt.is_last = not (can_repeat and method in IDEMPOTENT and is_lost(error))
                    raise
                status = status_of(response)
                if not can_repeat or not (method in IDEMPOTENT or status in NOT_PROCESSED):
                    return response
                if attempt.should_retry(response):
                    continue
                return response
        raise AssertionError  # the last attempt raises its error

    def forget(self, request: Any) -> None:
        """Remove the credentials from a request that was redirected to another server."""
        if getattr(self._inner, "granted", ()) and origin_of(str(request.url)) != self._inner.origin:
            for name in self._inner.granted:
                request.headers.pop(name, None)

    def _authorized(self, request: Any, options: dict[str, Any], endpoint: str, can_repeat: bool) -> Any:
        if self.auth is None:
            return self._timed(request, options, endpoint)
        plain = _plain(request)
        sent = self._authorize(request, plain)
        response = self._timed(request, options, endpoint)
        status = status_of(response) or 0
        if not can_repeat or not repeats(self.auth, sent, status, headers_of(response)):
            return response
        response.close()
        self._authorize(request, plain)
        return self._timed(request, options, endpoint)

    def _authorize(self, request: Any, plain: Request) -> Request:
        """Authorize a session's request in place, and return it as it is sent."""
        sent = authorize(self.auth, plain)
        added = {name: value for name, value in sent.headers.items() if plain.headers.get(name) != value}
        self._inner.granted, self._inner.origin = [*added], origin_of(plain.url)
        request.headers.update(added)
        if sent.url != plain.url:
            request.url = type(request.url)(sent.url)
        return sent

    def _timed(self, request: Any, options: dict[str, Any], endpoint: str) -> Any:
        from balog import metrics  # imported with the first request

        self._inner.is_in = True
        try:
            with metrics.http_request_timer(endpoint) as timer:
                response = self.send(request, **options)
                status = status_of(response)
                timer.tags[metrics.Tag.http_status_code] = status
                if status is not None and status >= 400:
                    timer.tags[metrics.Tag.status] = metrics.Status.failed
                return response
        finally:
            self._inner.is_in = False


def _has_whole_body(request: Any) -> bool:
    if hasattr(request, "stream"):  # httpx: only bytes in memory can be read twice
        return type(request.stream).__name__ == "ByteStream"
    return isinstance(getattr(request, "body", None), (str, bytes, bytearray, type(None)))


def _plain(request: Any) -> Request:
    """Return a session's request as the client's own; without a body that can be read only once."""
    is_httpx = hasattr(request, "stream") and _has_whole_body(request)
    body = request.content if is_httpx else getattr(request, "body", None)
    body = body.encode() if isinstance(body, str) else body
    whole = bytes(body) if isinstance(body, (bytes, bytearray)) else None
    return Request(str(request.method).upper(), str(request.url), dict(request.headers), whole)


def _is_of(thing: Any, library: str) -> bool:
    return any(kind.__module__.partition(".")[0] == library for kind in type(thing).__mro__)
