"""Sessions of ``requests`` and ``httpx`` that time their requests and try them again, without either being imported."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from balog import metrics
from balog.tap.errors import TapError
from balog.tap.http.outcomes import endpoint_of, is_lost, origin_of, status_of
from balog.tap.http.retrying import AGAIN, NOT_DONE, Policy

__all__ = ["instrument"]

_Session = TypeVar("_Session")


def instrument(
    session: _Session,
    policy: Policy | None = None,
    *,
    auth: Callable[[], Mapping[str, str]] | None = None,
    timeout: float = 60.0,
) -> _Session:
    """Have a session do what ``Client`` does: time each request, try again what may pass, renew credentials at a 401.

    Responses and exceptions stay the library's own: what is left when the policy has no further try is given or raised
    as ever. A request with a body that can be read only once is not tried again, nor is one by a method that does harm
    when it is done twice, unless the server says that it did nothing (425, 429, 503).

    Args:
        session: a ``requests.Session``, an ``httpx.Client``, or what else has ``send(request, …)``; it is changed.
        policy: ``Policy()`` if none.
        auth: as of ``Client``; its headers are left out when a redirect leads to another server.
        timeout: seconds, for a session whose caller gave none: ``requests`` would wait for ever.

    Returns:
        the same session.

    Raises:
        TapError: it has no ``send``, or was instrumented before.
    """
    send = getattr(session, "send", None)
    if not callable(send) or getattr(send, "is_instrumented", False):
        raise TapError(f"instrument({type(session).__name__}): want a session with send(), and each but once")
    sender = _Sender(send, policy or Policy(), auth, timeout if _is_of(session, "requests") else None)
    session.send = sender  # type: ignore[attr-defined]
    hooks = getattr(session, "event_hooks", None)
    if isinstance(hooks, dict):  # of httpx, which follows redirects by itself
        hooks["request"] = [*hooks.get("request", ()), sender.forget]
    return session


class _Sender:
    is_instrumented = True

    def __init__(
        self,
        send: Callable[..., Any],
        policy: Policy,
        auth: Callable[[], Mapping[str, str]] | None,
        timeout: float | None,
    ) -> None:
        self._send = send
        self._policy = policy
        self._auth = auth
        self._timeout = timeout
        self._inner = threading.local()

    def __call__(self, request: Any, **options: Any) -> Any:
        if getattr(self._inner, "is_in", False):  # requests sends a redirect's by the same way
            self.forget(request)
            return self._send(request, **options)
        if self._timeout is not None and options.get("timeout") is None:
            options["timeout"] = self._timeout
        method, endpoint = str(request.method).upper(), endpoint_of(str(request.url))
        can_repeat = _has_whole_body(request)
        for attempt in self._policy.attempts(endpoint):
            with attempt:
                try:
                    response = self._authorized(request, options, endpoint, can_repeat)
                except Exception as error:
                    attempt.is_last = not (can_repeat and method in AGAIN and is_lost(error))
                    raise
                status = status_of(response)
                if not can_repeat or not (method in AGAIN or status in NOT_DONE):
                    return response
                if attempt.goes_on(response):
                    continue
                return response
        raise AssertionError  # the last attempt's error came out of its block

    def forget(self, request: Any) -> None:
        """Leave the credentials out of a request that a redirect has led to another server."""
        if getattr(self._inner, "granted", ()) and origin_of(str(request.url)) != self._inner.origin:
            for name in self._inner.granted:
                request.headers.pop(name, None)

    def _authorized(self, request: Any, options: dict[str, Any], endpoint: str, can_repeat: bool) -> Any:
        if self._auth is None:
            return self._timed(request, options, endpoint)
        granted = dict(self._auth())
        self._inner.granted, self._inner.origin = [*granted], origin_of(str(request.url))
        request.headers.update(granted)
        response = self._timed(request, options, endpoint)
        refresh = getattr(self._auth, "refresh", None)
        if status_of(response) != 401 or refresh is None or not can_repeat:
            return response
        refresh(granted)
        response.close()
        request.headers.update(self._auth())
        return self._timed(request, options, endpoint)

    def _timed(self, request: Any, options: dict[str, Any], endpoint: str) -> Any:
        self._inner.is_in = True
        try:
            with metrics.http_request_timer(endpoint) as timer:
                response = self._send(request, **options)
                status = status_of(response)
                timer.tags[metrics.Tag.http_status_code] = status
                if status is not None and status >= 400:
                    timer.tags[metrics.Tag.status] = metrics.Status.failed
                return response
        finally:
            self._inner.is_in = False


def _has_whole_body(request: Any) -> bool:
    if hasattr(request, "stream"):  # httpx: what is no stream of bytes in memory can be read once
        return type(request.stream).__name__ == "ByteStream"
    return isinstance(getattr(request, "body", None), (str, bytes, bytearray, type(None)))


def _is_of(thing: Any, library: str) -> bool:
    return any(kind.__module__.partition(".")[0] == library for kind in type(thing).__mro__)
