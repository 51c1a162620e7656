"""Sessions of ``requests`` and ``httpx`` that measure and retry their requests; neither library is imported."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from balog.tap.errors import TapError
from balog.tap.http.outcomes import endpoint_of, is_lost, status_of
from balog.tap.http.retries import IDEMPOTENT, NOT_PROCESSED, Policy

_Session = TypeVar("_Session")


def instrument(session: _Session, policy: Policy | None = None, *, timeout: float = 60.0) -> _Session:
    """Make a session measure its requests and retry failures, as ``Client`` does.

    Responses and exceptions are the library's own, and those of the last try are returned or raised as usual. A request
    whose body can be read only once is not retried. A request with a method that is not idempotent is retried only if
    the server did not process it (425, 429, 503).

    Args:
        session: a ``requests.Session``, an ``httpx.Client``, or another object with ``send(request, …)``.
        policy: the retry policy; None means ``Policy()``.
        timeout: the default timeout in seconds; ``requests`` has none.

    Returns:
        The same session.

    Raises:
        TapError: it has no ``send``, or is instrumented already.
    """
    send = getattr(session, "send", None)
    if not callable(send) or getattr(send, "is_instrumented", False):
        raise TapError(f"instrument({type(session).__name__}): expected a session with send() that is not instrumented")
    is_requests = any(kind.__module__.partition(".")[0] == "requests" for kind in type(session).__mro__)
    session.send = _Sender(send, policy or Policy(), timeout if is_requests else None)  # type: ignore[attr-defined]
    return session


@dataclass
class _Sender:
    send: Callable[..., Any]
    policy: Policy
    timeout: float | None
    _inner: threading.local = field(default_factory=threading.local)
    is_instrumented: ClassVar[bool] = True

    def __call__(self, request: Any, **options: Any) -> Any:
        if getattr(self._inner, "is_in", False):  # requests sends redirected requests with send, too
            return self.send(request, **options)
        if self.timeout is not None and options.get("timeout") is None:
            options["timeout"] = self.timeout
        method, endpoint = str(request.method).upper(), endpoint_of(str(request.url))

        def can_repeat(outcome: Any) -> bool:
            if isinstance(outcome, Exception):
                is_safe = method in IDEMPOTENT and is_lost(outcome)
            else:
                is_safe = method in IDEMPOTENT or status_of(outcome) in NOT_PROCESSED
            return is_safe and _has_whole_body(request)

        for attempt in self.policy.attempts(endpoint, can_repeat):
            with attempt:
                response = self._timed(request, options, endpoint)
                if not attempt.should_retry(response):
                    return response
        raise AssertionError  # the last attempt raises its error

    def _timed(self, request: Any, options: dict[str, Any], endpoint: str) -> Any:
        from balog.log import metrics  # imported with the first request

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
