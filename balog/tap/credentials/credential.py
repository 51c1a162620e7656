"""A credential, and when it is asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import balog
from balog.errors import BalogError
from balog.tap.errors import SourceError, TapError
from balog.tap.http.outcomes import fault_of

__all__ = ["Credential", "Granted", "once", "periodic"]

_PART = 5 / 6  # of a grant's life: 25 of 30 minutes, after which many APIs' tokens end
_AGAIN = 10.0  # seconds after a refresh that failed


class Granted(NamedTuple):
    """What a function of ``periodic`` may give: a credential, and the seconds for which it is good."""

    value: Any
    seconds: float

    def __repr__(self) -> str:
        return f"Granted(…, {self.seconds:g})"


class Credential:
    """A credential that is asked for when it is first used, and again when it is out of date. Threads may share it.

    Calling it gives the credential. A refresh that fails leaves the old one in use for as long as it is good, is told
    as a WARNING, and is tried again after 10 seconds.

    Args:
        function: gives it, or a ``Granted``.
        seconds: of use, after which it is asked for anew; None for never.
        lifetime: seconds for which it is good; a ``Granted`` says it itself.
        clock: seconds, on any clock that only goes forward.

    Raises:
        TapError: a time of 0 or less, or a life that ends before the refresh.
    """

    def __init__(
        self,
        function: Callable[[], Any],
        seconds: float | None = None,
        lifetime: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if seconds is not None and not seconds > 0:
            raise TapError(f"a credential that is refreshed each {seconds} seconds: want more than 0")
        if seconds is not None and lifetime is not None and lifetime < seconds:
            raise TapError(f"a credential that is refreshed after {seconds} seconds is good for {lifetime} only")
        self._function = function
        self._seconds = seconds
        self._lifetime = lifetime if lifetime is not None or seconds is None else seconds / _PART
        self._clock = clock
        self._name = getattr(function, "__name__", type(function).__name__)
        self._asking = threading.Lock()
        self._asker = 0  # the thread that holds it
        self._value: Any = None
        self._is_there = False
        self._stale_at = self._dead_at = float("inf")

    def __call__(self) -> Any:
        """Give the credential, refreshed where that is due.

        Raises:
            SourceError: there is none, or it is no longer good, and asking for one failed.
        """
        now = self._clock()
        if self._is_there and now < self._stale_at:
            return self._value
        is_good = self._is_there and now < self._dead_at
        # While one thread asks, the others go on with the old one, as long as it is good.
        if not is_good:
            self._refuse_circle()
        if not self._asking.acquire(blocking=not is_good):
            return self._value
        try:
            if not (self._is_there and self._clock() < self._stale_at):  # another thread may have been here meanwhile
                self._ask(is_good)
            return self._value
        finally:
            self._asking.release()

    def refresh(self, used: Any = None) -> Any:
        """Ask for a new one now, because the source refused the one that was used; give it.

        Args:
            used: the one that was refused; when another one is there by now, nothing is asked for.

        Raises:
            SourceError: asking failed.
        """
        self._refuse_circle()
        with self._asking:
            if used is None or not self._is_there or used == self._value:
                self._ask(is_good=False)
            return self._value

    def __repr__(self) -> str:
        return f"<Credential {self._name}>"

    def _refuse_circle(self) -> None:
        if self._asker == threading.get_ident():
            raise TapError(f"the function of the credential {self._name} uses that credential itself")

    def _ask(self, is_good: bool) -> None:
        self._asker = threading.get_ident()
        try:
            given = self._function()
        except Exception as error:
            said = str(error) if isinstance(error, BalogError) else fault_of(error)
            if is_good:
                balog.get_logger("balog.tap.credentials").warning(
                    f"the credential {self._name} could not be refreshed, the old one stays in use: {said}"
                )
                self._stale_at = self._clock() + _AGAIN
                return
            raise SourceError(
                f"the credential {self._name} could not be had: {said}", retryable=getattr(error, "retryable", False)
            ) from None
        finally:
            self._asker = 0
        now = self._clock()
        if isinstance(given, Granted):
            self._value, self._dead_at = given.value, now + given.seconds
            self._stale_at = now + min(given.seconds * _PART, self._seconds or float("inf"))
        else:
            self._value = given
            self._stale_at = float("inf") if self._seconds is None else now + self._seconds
            self._dead_at = float("inf") if self._lifetime is None else now + self._lifetime
        self._is_there = True


def once(function: Callable[[], Any]) -> Credential:
    """Ask a function for a credential when that is first used, and never again unless the source refuses it."""
    return Credential(function)


@overload
def periodic(
    function: Callable[[], Any], *, minutes: float = 25, lifetime_minutes: float | None = None
) -> Credential: ...
@overload
def periodic(
    function: None = None, *, minutes: float = 25, lifetime_minutes: float | None = None
) -> Callable[[Callable[[], Any]], Credential]: ...
def periodic(
    function: Callable[[], Any] | None = None, *, minutes: float = 25, lifetime_minutes: float | None = None
) -> Any:
    """Ask a function for a credential again when it is used and older than some minutes; also as a decorator.

    Args:
        function: see ``Credential``.
        minutes: 25 is what suits tokens that live for half an hour.
        lifetime_minutes: for which it is good; 30 when ``minutes`` are 25, and so on, if not said.
    """
    lifetime = None if lifetime_minutes is None else lifetime_minutes * 60
    if function is None:
        return lambda function: Credential(function, minutes * 60, lifetime)
    return Credential(function, minutes * 60, lifetime)
