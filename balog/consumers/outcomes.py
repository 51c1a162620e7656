"""Exceptions of handlers: give up, retry later, fail some events of a batch, or end the run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

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
    """

    def __init__(self, failed: Mapping[str, str | BaseException] | Iterable[str | Event]) -> None:
        if isinstance(failed, Mapping):
            self.failed: dict[str, str | BaseException] = {id: why or _NO_REASON for id, why in failed.items()}
        else:
            ids = [event.header.id if isinstance(event, Event) else event for event in failed]
            self.failed = dict.fromkeys(ids, _NO_REASON)
        super().__init__(f"{len(self.failed)} events of the batch failed")
