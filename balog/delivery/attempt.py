"""Attempts to deliver a batch: their outcome, the connection that makes them, and the health of the sink."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from balog.common.backoff import BackoffSequence
from balog.common.errors import ConfigError, MissingExtraError, redact_error
from balog.delivery.notices import ThrottledNotices
from balog.sinks.base import Delivery, Sink, SinkConfig, SinkError

NEVER = float("inf")


class AttemptOutcome(NamedTuple):
    """The outcome of an attempt.

    Attributes:
        taken: how many events the sink took.
        dead: the indexes of events that the sink refused for good, each with the reason.
        left: the indexes of events to try again.
        error: the last error, if there was any.
        unnamed: how many events were refused for good without the sink naming them.
    """

    taken: int
    dead: dict[int, str]
    left: list[int]
    error: SinkError | None
    unnamed: int = 0


def attempt(write: Callable[[Sequence[Delivery]], None], batch: Sequence[Delivery]) -> AttemptOutcome:
    """Write a batch. If it is refused for good, halve it until the refused events are found.

    That takes at most twice as many writes as the batch has events. An exception other than ``SinkError`` is a bug in
    the sink and counts as a refusal for good.
    """
    unnamed = 0
    error: SinkError | None = None
    parts: list[Sequence[Delivery]] = [batch] if batch else []
    while parts:
        part = parts.pop()
        try:
            write(part)
        except (Exception, SystemExit) as raised:  # which would end the thread and nothing else
            error = _checked(as_sink_error(raised), len(part))
        else:
            if part is batch and not any(delivery.refusal for delivery in batch):
                return AttemptOutcome(len(batch), {}, [], None)
            for delivery in part:
                if not delivery.refusal:
                    delivery.accept()
            continue
        for index, why in error.rejected.items():
            part[index].refuse(why)
        remaining = range(len(part)) if error.remaining is None else set(error.remaining)
        for index, delivery in enumerate(part):
            if delivery.refusal is None and index not in remaining:
                delivery.accept()
        unnamed += min(error.unnamed, sum(delivery.refusal == "" for delivery in part))
        rest = [delivery for delivery in part if delivery.refusal is None]
        if error.retryable and rest:
            break
        if len(rest) == 1:
            rest[0].refuse(str(error))
        elif rest:
            middle = len(rest) // 2
            parts += [rest[middle:], rest[:middle]]  # the first half is tried first
    so_far = outcome_so_far(batch)
    return so_far._replace(taken=so_far.taken - unnamed, error=error, unnamed=unnamed)


def outcome_so_far(batch: Sequence[Delivery]) -> AttemptOutcome:
    """Return what is known of a batch while an attempt is under way, in another thread also."""
    refusals = [delivery.refusal for delivery in batch]
    dead = {index: why for index, why in enumerate(refusals) if why}
    return AttemptOutcome(refusals.count(""), dead, [n for n, why in enumerate(refusals) if why is None], None)


def as_sink_error(error: BaseException) -> SinkError:
    """Return a sink's exception as a ``SinkError``."""
    return error if isinstance(error, SinkError) else SinkError(reason_of(error), retryable=False)


def _checked(error: SinkError, size: int) -> SinkError:
    """Return the error, redacted, with its indexes in lists.

    An answer that names an event which the batch does not have proves no delivery: all indexes are dropped, and all
    events remain.
    """
    reason = redact_error(str(error))
    try:
        rejected, remaining = dict(error.rejected), None if error.remaining is None else list(error.remaining)
        unnamed = max(0, int(error.unnamed))
    except (TypeError, ValueError):
        wrong: object = "with a wrong type"
    else:
        named = (*rejected, *(remaining or ()))
        wrong = next((n for n in named if type(n) is not int or not 0 <= n < size), None)
        if wrong is None:
            return SinkError(
                reason,
                retryable=error.retryable,
                retry_after=error.retry_after,
                rejected=rejected,
                remaining=remaining,
                unnamed=unnamed,
            )
    reason = f"{reason} (a bug in the sink: it names event {wrong!r:.20} of {size})"
    return SinkError(reason, retryable=error.retryable, retry_after=error.retry_after)


def reason_of(error: BaseException) -> str:
    """Return an error as one line. For errors other than ``SinkError`` the line begins with the type."""
    text = str(error) if isinstance(error, SinkError) else f"{type(error).__name__}: {error}"
    return redact_error(" ".join(text.split()))


class SinkHealth:
    """The state of one sink as its attempts show it.

    Args:
        on_failure: what happens next, for the notice about a failure.

    Attributes:
        is_failing: whether the last attempt failed.
        reason: the error of the last failed attempt, also after the sink recovered; "" if none has failed.
    """

    def __init__(self, notices: ThrottledNotices, on_failure: str = "trying again") -> None:
        self.is_failing = False
        self.reason = ""
        self._notices = notices
        self._on_failure = on_failure

    def fail(self, error: SinkError, *, is_retried: bool = True) -> None:
        """Note a failed attempt; send a notice about the first of several if it is retried."""
        self.reason = reason_of(error)
        was_failing, self.is_failing = self.is_failing, True
        if is_retried and not was_failing and self._notices.is_due("failure"):
            self._notices.send(f"{self.reason}; {self._on_failure}")

    def recover(self) -> None:
        """Note an attempt that succeeded; send a notice if there was one about the failure."""
        was_failing, self.is_failing = self.is_failing, False
        if was_failing and self._notices.was_sent("failure") and self._notices.is_due("recovery"):
            self._notices.send("takes events again")

    def note(self, outcome: AttemptOutcome, dead_letters: str) -> None:
        """Note the outcome of an attempt, with the notices of ``fail``, ``recover`` and ``refuse``."""
        error = outcome.error
        if error is None:
            if self.is_failing and outcome.taken:
                self.recover()
            return
        if outcome.left or not outcome.taken:
            self.fail(error, is_retried=bool(outcome.left))
        else:
            self.recover()
            self.reason = reason_of(error)
        self.refuse(outcome, dead_letters)

    def refuse(self, outcome: AttemptOutcome, dead_letters: str) -> None:
        """Send notices about events that were refused for good.

        Args:
            dead_letters: what becomes of them, for the notice.
        """
        if outcome.dead:
            first = next(iter(outcome.dead.values()))
            self._notices.send_once(f"{first}; {dead_letters}", about="dead letters")
        if outcome.unnamed and outcome.error is not None:
            self._notices.send_once(
                f"{reason_of(outcome.error)}; it does not say which, so they are counted and not kept", about="unnamed"
            )


class SinkConnection:
    """A sink and whether it is open. One thread uses it.

    Raises:
        ConfigError: the sink can't be built.

    Attributes:
        sink: the sink.
        is_open: whether it is open.
        is_opening: whether the sink is being opened while no event waits for it.
        open_at: when to try to open it again, by the monotonic clock; ``NEVER`` if it is open or that can't help.
        asked_at: when the attempt under way began, by the monotonic clock; None if there is none.
    """

    def __init__(self, config: SinkConfig, health: SinkHealth) -> None:
        self.sink: Sink = config.build()
        self._health = health
        self._delays = BackoffSequence(config.retry.backoff())
        self.is_open = False
        self.is_opening = True
        self.open_at = 0.0
        self.asked_at: float | None = None

    def open_early(self) -> None:
        """Open the sink before an event waits for it, so that it can be scraped and continue an earlier run's work."""
        self.is_opening = True
        error = self._try_open()
        self.is_opening = False
        if error is None:
            self._health.recover()
            return
        self.open_at = time.monotonic() + self._delays.next() if error.retryable else NEVER
        self._health.fail(error)

    def deliver(self, batch: Sequence[Delivery]) -> AttemptOutcome:
        """Open the sink if it is not open, and make one attempt to deliver a batch."""
        self.asked_at = time.monotonic()
        error = None if self.is_open else self._try_open()
        if error is None:
            outcome = attempt(self.sink.write, batch)
        elif error.retryable:
            outcome = AttemptOutcome(0, {}, list(range(len(batch))), error)
        else:
            outcome = AttemptOutcome(0, dict.fromkeys(range(len(batch)), str(error)), [], error)
        self.asked_at = None
        return outcome

    def open(self) -> None:
        """Open the sink.

        Raises:
            SinkError: it could not be opened.
            ConfigError, MissingExtraError: as the sink raised them.
        """
        try:
            self.sink.open()
        except (ConfigError, MissingExtraError):
            raise
        except Exception as error:
            raise as_sink_error(error) from None
        self.is_open = True
        self.open_at = NEVER

    def _try_open(self) -> SinkError | None:
        try:
            self.open()
        except Exception as error:
            return as_sink_error(error)
        return None
