"""Exceptions of handlers: give up, retry later, fail some events of a batch, or end the run; and what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from balog.common.errors import BalogError, ConfigError
from balog.event import Event

_NO_REASON = "failed in its batch"


class Reject(BalogError):
    """Dead-letter this event with the reason, without further attempts."""


class Retry(BalogError):
    """Retry the event later without counting an attempt, because the other side is down or busy.

    The event stays in this engine, which extends its lease, so its number of deliveries does not grow.

    Args:
        reason: what happened, as a clause.
        after: seconds; the consumer's own backoff when omitted.
    """

    retryable = True

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        if after is not None and math.isnan(after):  # raises a TypeError if it is not a number
            raise ValueError("after is nan; expected seconds")
        self.after = after


class Requeue(BalogError):
    """Return the event to the topic, which delivers it again later, without counting an attempt.

    While it waits there, it needs no memory and no lease, and any engine of the group may receive it. That suits waits
    of minutes to days; for a consumer with ``ordered_by``, the event stays in the engine as after a :class:`Retry`.

    Args:
        reason: what happened, as a clause.
        after: seconds.
        counts: count this delivery in the topic (``Received.attempts``), where the topic can tell.
    """

    retryable = True

    def __init__(self, reason: str, after: float = 0.0, *, counts: bool = True) -> None:
        super().__init__(reason)
        if math.isnan(after):
            raise ValueError("after is nan; expected seconds")
        self.after = max(0.0, after)
        self.counts = counts


class Halt(ConfigError):
    """End the run because the handler can't work for any event: a setting, a secret or a package is missing.

    ``balog consume`` exits with code 2. The events are released as they were, without counting an attempt. Never raise
    it because of an event's content: the next run receives the same event again.
    """


class PartialFailure(BalogError):
    """Some events of a batch failed; the others succeeded.

    For a consumer with ``ordered_by``, the later events of a failed event's key in the batch are delivered again after
    it, without counting an attempt: a handler may skip the rest of a key after its first failure.

    Args:
        failed: the events that failed, or their ids. A mapping adds the reason: a text, or an exception as if a call
            with this event alone had raised it (a ``Reject``, a ``Retry``, any other).
        reason: the text of the exception; the number of events when omitted.
    """

    def __init__(
        self, failed: Mapping[str, str | BaseException] | Iterable[str | Event], reason: str | None = None
    ) -> None:
        if isinstance(failed, Mapping):
            self.failed: dict[str, str | BaseException] = {id: why or _NO_REASON for id, why in failed.items()}
        else:
            ids = [event.header.id if isinstance(event, Event) else event for event in failed]
            self.failed = dict.fromkeys(ids, _NO_REASON)
        super().__init__(reason or f"{len(self.failed)} events of the batch failed")


class Disposition(Enum):
    """What happens to a consumer's share of a message next."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """Retried after a delay; counts as an attempt."""
    POSTPONED = "postponed"
    """Retried after a delay because the other side is not ready; does not count."""
    REQUEUED = "requeued"
    """Released to the topic, which delivers it again after a delay; does not count."""
    LEFT = "left"
    """Not called: the message is no longer this process's."""
    KNOWN = "known"
    """Not called: the event was handled elsewhere meanwhile."""
    DEAD = "dead"
    """Never retried."""


class TaskResult(NamedTuple):
    """The result of a call for one event.

    Attributes:
        delay: seconds until the retry.
        reason: of a dead one, for its dead letter.
        attempt: the number of the attempt that failed.
        counts: a requeued message's delivery counts in the topic.
    """

    disposition: Disposition
    delay: float = 0.0
    reason: str = ""
    error: BaseException | None = None
    attempt: int = 1
    counts: bool = False


def find_halt(error: BaseException) -> BaseException | None:
    """Return the ``Halt`` that a handler raised, also inside a ``PartialFailure``; None when it raised none.

    Any other error is a failed attempt, also one that is not an ``Exception``: a handler never runs in the main thread,
    and only that thread gets a signal's ``KeyboardInterrupt``.
    """
    errors = error.failed.values() if isinstance(error, PartialFailure) else (error,)
    return next((why for why in errors if isinstance(why, Halt)), None)
