"""The retry policy, for any call."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import balog
from balog.common.backoff import Backoff
from balog.tap.errors import SourceError, TapError, check_number
from balog.tap.http.outcomes import fault_of, is_lost, requested_wait, status_of
from balog.tap.patterns.concurrency import pause

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
IDEMPOTENT = SAFE | {"PUT", "DELETE"}
"""Methods that have the same effect once or twice (RFC 9110, 9.2.2)."""
NOT_PROCESSED = frozenset({425, 429, 503})
"""Statuses of requests that the server did not process: any method can be retried."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_DAY = 86400.0


@dataclass(eq=False)
class Policy:
    """Which failures are retried, how often, and after which waits.

    The waits grow exponentially with full jitter: each is drawn from 0 to ``first * 2**n``, at most ``longest``, so
    that clients that failed together do not retry together
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). If the
    server asks for a longer wait, that is used; if it is longer than the rest of ``total``, there is no retry.

    Args:
        tries: the maximum number of tries, including the first.
        first: the upper limit of the first wait, in seconds.
        longest: the upper limit of each wait, in seconds, unless the server asks for more.
        total: the time after which no try starts, in seconds.
        statuses: the statuses that are retried: too many requests, timeouts, temporary errors of the server.
        also: further exceptions that are retried.
        sleep: waits some seconds; replaced in tests.
        clock: returns seconds, for ``total``.
        chance: returns numbers from 0 to 1.

    Raises:
        TapError: an invalid number.
    """

    tries: int = 6
    first: float = 1.0
    longest: float = 60.0
    total: float = 600.0
    statuses: Collection[int] = (408, 425, 429, 500, 502, 503, 504)
    also: tuple[type[Exception], ...] = ()
    sleep: Callable[[float], None] = field(default=pause, kw_only=True)
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    chance: Callable[[], float] = field(default=random.random, kw_only=True)

    def __post_init__(self) -> None:
        check_number("a retry policy: tries", self.tries, least=1)
        for name in ("first", "longest", "total"):
            check_number(f"a retry policy: {name}", getattr(self, name))
        if max(self.first, self.longest) > _DAY:
            raise TapError(f"a retry policy: waits of {max(self.first, self.longest)} seconds: expected at most {_DAY}")
        self.backoff = Backoff(min(self.first, self.longest), self.longest)
        self.statuses, self.also = frozenset(self.statuses), tuple(self.also)

    def is_retryable(self, outcome: Any) -> bool:
        """Return whether a response or an exception is retried."""
        status = status_of(outcome)
        if status is not None:
            asks_to_wait = status == 403 and requested_wait(outcome) is not None  # GitHub's form of 429
            return status in self.statuses or asks_to_wait
        if isinstance(outcome, self.also):
            return True
        if isinstance(outcome, SourceError):
            return outcome.retryable
        return isinstance(outcome, Exception) and is_lost(outcome)

    def attempts(
        self, endpoint: str = "", can_repeat: Callable[[Any], bool] = lambda outcome: True
    ) -> Iterator[Attempt]:
        """Yield attempts until one succeeds.

        ::

            for attempt in policy.attempts("contacts"):
                with attempt:
                    response = requests.get(url)
                    response.raise_for_status()

        The exception of each failure is suppressed at the end of its block, except that of the last.

        Args:
            endpoint: the name of the request in logs and metrics, without secrets.
            can_repeat: whether the call may be repeated after a response or an exception that the policy retries.
        """
        return iter(Attempt(self, endpoint, can_repeat))

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorate a function: its exceptions, and the responses that it returns, are retried.

        The response of the last try is returned, whatever its status.
        """

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            for attempt in self.attempts(getattr(function, "__name__", "")):
                with attempt:
                    result = function(*args, **kwargs)
                    if not attempt.should_retry(result):
                        return result
            raise AssertionError  # the last attempt returns or raises

        return call


def retrying(policy: Policy | None = None) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function that queries a source, see ``Policy.__call__``; None means ``Policy()``."""
    return policy or Policy()


class Attempt:
    """One try of a call, as a context manager around it; the same object for all tries."""

    def __init__(self, policy: Policy, endpoint: str, can_repeat: Callable[[Any], bool]) -> None:
        self._policy, self._endpoint, self._can_repeat = policy, endpoint, can_repeat
        self._has_failed = self._is_over = False
        self._failures = 0
        self._started_at = policy.clock()

    def __iter__(self) -> Iterator[Attempt]:
        while not self._is_over:
            self._has_failed = False
            yield self
            if not self._has_failed:
                return

    def should_retry(self, response: Any) -> bool:
        """Return whether a response is retried, after the wait; then leave the block.

        It leaves the last response to the caller.
        """
        wait = self._wait_for(response)
        if wait is None:
            return False
        self._has_failed = True
        _release(response)
        self._policy.sleep(wait)
        return True

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self._has_failed = True
        wait = self._wait_for(error)
        if wait is None:
            return False
        self._policy.sleep(wait)
        return True

    def _wait_for(self, outcome: Any) -> float | None:
        """Return the seconds before another try, and log and count it; None if there is none."""
        policy = self._policy
        if not policy.is_retryable(outcome) or not self._can_repeat(outcome):
            return None
        self._failures += 1
        self._is_over = True
        if self._failures >= policy.tries:
            return None
        wait = policy.backoff.delay(self._failures, chance=policy.chance)
        asked = requested_wait(outcome)
        if asked is not None:  # plus jitter, so that clients do not retry at the same moment
            wait = max(wait, asked + policy.chance() * min(1.0, policy.first))
        if policy.clock() - self._started_at + wait > policy.total:
            return None
        self._is_over = False
        self._report(outcome, wait)
        return wait

    def _report(self, outcome: Any, wait: float) -> None:
        fault, status = fault_of(outcome), status_of(outcome)
        balog.get_logger("balog.tap.http").warning(
            f"{self._endpoint or 'the source'}: {fault}; trying again in {wait:.1f} s",
            endpoint=self._endpoint,
            http_status_code=status,
            fault=fault,
            wait=round(wait, 3),
            attempt=self._failures,
        )
        from balog.log import metrics  # imported with the first retry

        tags = {metrics.Tag.http_status_code: status or "none"}
        if self._endpoint:
            tags[metrics.Tag.endpoint] = self._endpoint
        metrics.counter("http_retry_count", tags).increment()


def _release(response: Any) -> None:
    close = getattr(response, "close", None)
    if callable(close):
        close()
