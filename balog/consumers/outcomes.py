"""What a handler may raise to say more than "failed": never again, later, only these of a batch, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from balog.errors import BalogError, ConfigError
from balog.event import Event

__all__ = ["Halt", "PartialFailure", "Reject", "Retry"]


_NO_REASON = "failed in its batch"


class Reject(BalogError):
    """This event will never be handled: it is dead-lettered with the reason, without further attempts."""


class Retry(BalogError):
    """The event is not to blame (the other side is down, busy …): try it again later, uncounted as an attempt.

    The event stays with this engine, whose lease on it is extended, so that nobody's count of deliveries grows.

    Args:
        reason: what happened, as a clause.
        after: seconds; the consumer's own backoff when omitted.
    """

    retryable = True

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        if after is not None and math.isnan(after):  # which raises a TypeError where it is no number at all
            raise ValueError("after is nan; want seconds")
        self.after = after


class Halt(ConfigError):
    """The handler can't work at all, whatever the event: a setting, a secret or a package is missing.

    The run ends with this, and ``balog consume`` with exit code 2. Its events are given back as they were, uncounted.
    Never raise it for what is in an event: whoever starts the run again meets the same one again.
    """


class PartialFailure(BalogError):
    """Some events of a batch failed; the rest of it succeeded.

    For a consumer with ``ordered_by``, the later events of a failed one's key in the batch come again behind it,
    uncounted as an attempt: a handler may stop with a key at its first failure.

    Args:
        failed: the events that failed, or their ids; as a mapping, each with why: a text, or an exception as if its
            event alone had raised it (a ``Reject``, a ``Retry``, any other).
    """

    def __init__(self, failed: Mapping[str, str | BaseException] | Iterable[str | Event]) -> None:
        if isinstance(failed, Mapping):
            self.failed: dict[str, str | BaseException] = {id: why or _NO_REASON for id, why in failed.items()}
        else:
            ids = [one.header.id if isinstance(one, Event) else one for one in failed]
            self.failed = dict.fromkeys(ids, _NO_REASON)
        super().__init__(f"{len(self.failed)} events of the batch failed")
