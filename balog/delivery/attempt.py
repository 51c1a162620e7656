"""One attempt to deliver a batch, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from balog.common.errors import redact_error
from balog.sinks.base import Delivery, SinkError


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
    taken, unnamed = 0, 0
    dead: dict[int, str] = {}
    error: SinkError | None = None
    parts = [list(range(len(batch)))] if batch else []
    while parts:
        part = parts.pop()
        try:
            write(batch if len(part) == len(batch) else [batch[index] for index in part])
        except (Exception, SystemExit) as raised:  # which would end the thread and nothing else
            error = _checked(as_sink_error(raised), len(part))
        else:
            taken += len(part)
            continue
        rejected = {part[n]: redact_error(why) for n, why in error.rejected.items()}
        chosen = range(len(part)) if error.remaining is None else sorted(set(error.remaining))
        rest = [part[n] for n in chosen if part[n] not in rejected]
        dead.update(rejected)
        settled = len(part) - len(rejected) - len(rest)
        unnamed += min(error.unnamed, settled)
        taken += settled - min(error.unnamed, settled)
        if error.retryable and rest:
            left = rest + [index for part in reversed(parts) for index in part]
            return AttemptOutcome(taken, dead, sorted(left), error, unnamed)
        if len(rest) == 1:
            dead[rest[0]] = str(error)
        elif rest:
            middle = len(rest) // 2
            parts += [rest[middle:], rest[:middle]]  # the first half is tried first
    return AttemptOutcome(taken, dead, [], error, unnamed)


def as_sink_error(error: BaseException) -> SinkError:
    """Return a sink's exception as a ``SinkError``."""
    return error if isinstance(error, SinkError) else SinkError(reason_of(error), retryable=False)


def _checked(error: SinkError, size: int) -> SinkError:
    """Return the error, redacted, with its indexes in lists.

    An answer that names an event which the batch does not have proves no delivery: all indexes are dropped, and all
    events remain.
    """
    error.args = (redact_error(str(error)),)
    try:
        rejected, remaining = dict(error.rejected), None if error.remaining is None else list(error.remaining)
        unnamed = max(0, int(error.unnamed))
    except (TypeError, ValueError):
        wrong: object = "with a wrong type"
    else:
        named = (*rejected, *(remaining or ()))
        wrong = next((n for n in named if type(n) is not int or not 0 <= n < size), None)
        if wrong is None:
            error.rejected, error.remaining, error.unnamed = rejected, remaining, unnamed
            return error
    reason = f"{error} (a bug in the sink: it names event {wrong!r:.20} of {size})"
    return SinkError(reason, retryable=error.retryable, retry_after=error.retry_after)


def reason_of(error: BaseException) -> str:
    """Return an error as one line. For errors other than ``SinkError`` the line begins with the type."""
    text = str(error) if isinstance(error, SinkError) else f"{type(error).__name__}: {error}"
    return redact_error(" ".join(text.split()))
