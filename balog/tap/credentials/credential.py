"""A credential, and when it is refreshed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import balog
from balog.common.errors import BalogError
from balog.tap.errors import SourceError, TapError, check_number
from balog.tap.http.outcomes import fault_of

_REFRESH_AT = 5 / 6  # of the lifetime: 25 of 30 minutes, the lifetime of many APIs' tokens
_RETRY_SECONDS = 10.0  # after a refresh that failed


class Granted(NamedTuple):
    """A credential and its lifetime in seconds, which a function of ``periodic`` may return."""

    value: Any
    seconds: float

    def __repr__(self) -> str:
        return f"Granted(…, {self.seconds:g})"


class Credential:
    """A credential that is fetched on first use, and refreshed before it expires. It is thread-safe.

    Call it to get the credential. If a refresh fails, the old credential stays in use until it expires, a WARNING is
    logged, and the refresh is retried after 10 seconds.

    Args:
        function: returns the credential, or a ``Granted``.
        seconds: the age at which it is refreshed; it expires at 6/5 of this age. None means never. A ``Granted`` has a
            lifetime of its own.
        clock: returns seconds and never goes back.

    Raises:
        TapError: a time of 0 or less.
    """

    def __init__(
        self,
        function: Callable[[], Any],
        seconds: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if seconds is not None:
            check_number("a credential: seconds", seconds)
        self._function = function
        self._seconds = seconds
        self._clock = clock
        self._name = getattr(function, "__name__", type(function).__name__)
        self._lock = threading.Lock()
        self._fetching_thread = 0
        self._value: Any = None
        self._is_fetched = False
        self._failures = 0
        self._failure = SourceError("")
        self._stale_at = self._expires_at = float("inf")

    def __call__(self) -> Any:
        """Return the credential, refreshed if that is due.

        Raises:
            SourceError: there is none, or it has expired, and fetching one failed.
        """
        now = self._clock()
        if self._is_fetched and now < self._stale_at:
            return self._value
        is_valid = self._is_fetched and now < self._expires_at
        failures = self._failures
        # While one thread fetches, the others use the old one until it expires.
        if not is_valid:
            self._refuse_recursion()
        if not self._lock.acquire(blocking=not is_valid):
            return self._value
        try:
            if not (self._is_fetched and self._clock() < self._stale_at):  # or another thread has
                self._fetch(is_valid, failures)
            return self._value
        finally:
            self._lock.release()

    def refresh(self, used: Any = None) -> Any:
        """Fetch and return a new credential, because the source rejected the old one.

        Args:
            used: the rejected credential; if it was replaced meanwhile, nothing is fetched.

        Raises:
            SourceError: fetching failed.
        """
        self._refuse_recursion()
        failures = self._failures
        with self._lock:
            if used is None or not self._is_fetched or used == self._value:
                self._fetch(False, failures)
            return self._value

    def __repr__(self) -> str:
        return f"<Credential {self._name}>"

    def _refuse_recursion(self) -> None:
        if self._fetching_thread == threading.get_ident():
            raise TapError(f"the function of the credential {self._name} uses that credential itself")

    def _fetch(self, is_valid: bool, failures: int) -> None:
        """Fetch the credential; ``failures``: the number of failures when this thread began to wait for the lock."""
        if failures != self._failures and not is_valid:  # it failed meanwhile, so threads do not fail one by one
            raise SourceError(self._failure.reason, retryable=self._failure.retryable)
        self._fetching_thread = threading.get_ident()
        try:
            given = self._function()
        except Exception as error:
            reason = str(error) if isinstance(error, BalogError) else fault_of(error)
            if is_valid:
                balog.get_logger("balog.tap.credentials").warning(
                    f"the credential {self._name} could not be refreshed, the old one stays in use: {reason}"
                )
                self._stale_at = self._clock() + _RETRY_SECONDS
                return
            self._failures += 1
            self._failure = SourceError(
                f"the credential {self._name} could not be fetched: {reason}",
                retryable=getattr(error, "retryable", False),
            )
            raise self._failure from None
        finally:
            self._fetching_thread = 0
        now = self._clock()
        if isinstance(given, Granted):
            self._value, self._expires_at = given.value, now + given.seconds
            self._stale_at = now + min(given.seconds * _REFRESH_AT, self._seconds or float("inf"))
        else:
            self._value = given
            seconds = float("inf") if self._seconds is None else self._seconds
            self._stale_at, self._expires_at = now + seconds, now + seconds / _REFRESH_AT
        self._is_fetched = True


def once(function: Callable[[], Any]) -> Credential:
    """Return a credential that is fetched on first use, and again only if the source rejects it."""
    return Credential(function)


def periodic(function: Callable[[], Any] | None = None, *, minutes: float = 25) -> Any:
    """Return a credential that is refreshed when it is used and older than some minutes; also a decorator.

    Args:
        function: see ``Credential``.
        minutes: the age at which it is refreshed; 25 suits tokens with a lifetime of half an hour.
    """
    check_number("a periodic credential: minutes", minutes)
    if function is None:
        return lambda function: Credential(function, minutes * 60)
    return Credential(function, minutes * 60)
