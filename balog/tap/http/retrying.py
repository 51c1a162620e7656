"""The retry policy: offered around any call, forced on none."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import balog
from balog import metrics
from balog.backoff import Backoff
from balog.tap.errors import SourceError, TapError
from balog.tap.http.outcomes import HttpError, fault_of, is_lost, status_of, wait_asked
from balog.tap.patterns.pausing import pause

__all__ = ["AGAIN", "NOT_DONE", "SAFE", "Attempt", "Policy", "retrying"]

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
AGAIN = SAFE | {"PUT", "DELETE"}
"""Methods that do the same whether done once or twice (RFC 9110, 9.2.2)."""
NOT_DONE = frozenset({425, 429, 503})
"""Statuses by which a server says that it did nothing: any method may be tried again."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_DAY = 86400.0


class Policy:
    """Which failures are tried again, how often, and how long is waited between.

    The waits grow exponentially with full jitter: each is drawn from 0 to ``first * 2**n``, at most ``longest``, so
    that many that failed together do not come back together
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). A longer wait that the other side
    asks for is kept to; when it asks for more than is left of ``total``, there is no further try.

    Args:
        tries: how often at most, with the first.
        first: seconds, of which the first wait is a part.
        longest: seconds of one wait at most, where the other side did not ask for more.
        total: seconds after which no further try begins.
        statuses: those that are tried again: too many requests, request time-outs, and a server's passing troubles.
        also: exceptions of a source's own that are tried again.
        sleep: waits; another one for tests.
        clock: the seconds by which ``total`` is measured.
        chance: gives numbers from 0 to 1.

    Raises:
        TapError: numbers that cannot be.
    """

    def __init__(
        self,
        tries: int = 6,
        first: float = 1.0,
        longest: float = 60.0,
        total: float = 600.0,
        statuses: tuple[int, ...] = (408, 425, 429, 500, 502, 503, 504),
        also: tuple[type[Exception], ...] = (),
        *,
        sleep: Callable[[float], None] = pause,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if tries < 1 or not 0 < first <= _DAY or not 0 < longest <= _DAY or not total > 0:
            raise TapError(
                f"a retry policy of tries={tries}, first={first}, longest={longest}, total={total}: want at least 1 "
                "try, waits of more than 0 and at most 86400 seconds, and a total of more than 0"
            )
        self.tries = tries
        self.first = first
        self.longest = longest
        self.backoff = Backoff(min(first, longest), longest)
        self.total = total
        self.statuses = frozenset(statuses)
        self.also = tuple(also)
        self.sleep = sleep
        self.clock = clock
        self.chance = chance

    def wants(self, outcome: Any) -> bool:
        """Tell whether a response or an exception is one that another try may mend."""
        status = status_of(outcome)
        if status is not None:
            asks_to_wait = status == 403 and wait_asked(outcome) is not None  # GitHub's way to say 429
            return status in self.statuses or asks_to_wait
        if isinstance(outcome, self.also):
            return True
        if isinstance(outcome, SourceError):
            return outcome.retryable
        return isinstance(outcome, Exception) and is_lost(outcome)

    def attempts(self, endpoint: str = "") -> Iterator[Attempt]:
        """Give one attempt after another, until one is done.

        ::

            for attempt in policy.attempts("contacts"):
                with attempt:
                    response = attempt.check(requests.get(url))

        Each failure but the last ends its block quietly; the last comes out of it.

        Args:
            endpoint: what was asked, for the log and the metrics; without secrets.
        """
        run = _Run(self, endpoint)
        while not run.is_over:
            attempt = Attempt(run)
            yield attempt
            if not attempt.has_failed:
                return

    def __iter__(self) -> Iterator[Attempt]:
        return self.attempts()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorate a function: its exceptions are tried again, and the responses that it returns.

        When the last try gives a response, it is returned as it is: what it means is the caller's to say.
        """

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            run = _Run(self, getattr(function, "__name__", ""))
            while True:
                try:
                    result = function(*args, **kwargs)
                except Exception as error:
                    if not run.goes_on(error):
                        raise
                    run.wait()
                    continue
                if not self.wants(result) or not run.goes_on(result):
                    return result
                _release(result)
                run.wait()

        return call


def retrying(policy: Policy | None = None) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function that asks a source, see ``Policy.__call__``; the policy is a plain ``Policy()`` if none."""
    return policy or Policy()


class Attempt:
    """One try, as a context around the call.

    Attributes:
        is_last: set within the block to have its failure come out, whatever the policy would do.
    """

    def __init__(self, run: _Run) -> None:
        self._run = run
        self.has_failed = False
        self.is_last = False

    @property
    def number(self) -> int:
        """Count the tries, from 1."""
        return self._run.failures + 1

    def check(self, response: Any) -> Any:
        """Give a response back, unless it is one that is tried again; then it ends the block.

        Raises:
            HttpError: the status is one of the policy's.
        """
        if self._run.policy.wants(response):
            _release(response)
            raise HttpError(f"the source answered {fault_of(response)}", response, retryable=True)
        return response

    def goes_on(self, response: Any) -> bool:
        """Tell whether a response is one that is tried again, and was waited for; the block is then to be left.

        As ``check``, for who wants the last response as it is.
        """
        if not self._run.policy.wants(response) or not self._run.goes_on(response):
            return False
        self.has_failed = True
        _release(response)
        self._run.wait()
        return True

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self.has_failed = True
        if self.is_last or not self._run.goes_on(error):
            return False
        self._run.wait()
        return True


class _Run:
    """The tries of one call."""

    def __init__(self, policy: Policy, endpoint: str) -> None:
        self.policy = policy
        self.endpoint = endpoint
        self.failures = 0
        self.is_over = False
        self._began = policy.clock()
        self._wait = 0.0

    def goes_on(self, outcome: Any) -> bool:
        """Tell whether there is another try after this failure; the wait is then told, counted and due."""
        policy = self.policy
        self.failures += 1
        self.is_over = True
        if not policy.wants(outcome) or self.failures >= policy.tries:
            return False
        wait = policy.backoff.delay(self.failures, chance=policy.chance)
        asked = wait_asked(outcome)
        if asked is not None:  # a little more, so that not all clients come at the same moment
            wait = max(wait, asked + policy.chance() * min(1.0, policy.first))
        if policy.clock() - self._began + wait > policy.total:
            return False
        self.is_over, self._wait = False, wait
        self._tell(outcome)
        return True

    def wait(self) -> None:
        self.policy.sleep(self._wait)

    def _tell(self, outcome: Any) -> None:
        fault, status = fault_of(outcome), status_of(outcome)
        balog.get_logger("balog.tap.http").warning(
            f"{self.endpoint or 'the source'}: {fault}; trying again in {self._wait:.1f} s",
            endpoint=self.endpoint,
            http_status_code=status,
            fault=fault,
            wait=round(self._wait, 3),
            attempt=self.failures,
        )
        tags = {metrics.Tag.http_status_code: status or "none"}
        if self.endpoint:
            tags[metrics.Tag.endpoint] = self.endpoint
        metrics.counter("http_retry_count", tags).increment()


def _release(response: Any) -> None:
    close = getattr(response, "close", None)
    if callable(close):
        close()
