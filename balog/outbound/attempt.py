"""One attempt to deliver a batch: what was taken, what is refused for good, and what may be tried again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from balog.sinks.base import Delivery, SinkError

__all__ = ["Outcome", "attempt", "reason_of"]

MAX_WRITES = 100
"""Writes at most in one attempt, unless said otherwise; with 100 an event or five of a thousand are found."""


class Outcome(NamedTuple):
    """What became of a batch, by the indexes of its events; ``error`` is the last trouble, if there was any.

    ``unnamed`` is the number of events that were refused for good where nobody knows which.
    """

    taken: int
    dead: dict[int, str]
    left: list[int]
    error: SinkError | None
    unnamed: int = 0


def attempt(
    write: Callable[[Sequence[Delivery]], None], batch: Sequence[Delivery], max_writes: int = MAX_WRITES
) -> Outcome:
    """Write a batch. When it is refused for good, narrow it down by halves, so that only the bad events are lost.

    An exception that is no ``SinkError`` is a mistake in the sink, and counts as refused for good.

    Args:
        max_writes: what is still together after so many is refused together; twice the batch finds every event.
    """
    taken, unnamed, writes = 0, 0, 0
    dead: dict[int, str] = {}
    trouble: SinkError | None = None
    parts = [list(range(len(batch)))] if batch else []
    while parts:
        part = parts.pop()
        if writes >= max_writes:
            dead.update(dict.fromkeys(part, str(trouble)))
            continue
        writes += 1
        try:
            write(batch if len(part) == len(batch) else [batch[index] for index in part])
        except Exception as error:
            trouble = as_sink_error(error)
        else:
            taken += len(part)
            continue
        rejected = {part[n]: why for n, why in trouble.rejected.items() if 0 <= n < len(part)}
        chosen = range(len(part)) if trouble.remaining is None else sorted(set(trouble.remaining))
        rest = [part[n] for n in chosen if 0 <= n < len(part) and part[n] not in rejected]
        dead.update(rejected)
        settled = len(part) - len(rejected) - len(rest)
        unnamed += min(trouble.unnamed, settled)
        taken += settled - min(trouble.unnamed, settled)
        if trouble.retryable and rest:
            left = rest + [index for part in reversed(parts) for index in part]
            return Outcome(taken, dead, sorted(left), trouble, unnamed)
        if len(rest) == 1:
            dead[rest[0]] = str(trouble)
        elif rest:
            middle = len(rest) // 2
            parts += [rest[middle:], rest[:middle]]  # the first half is tried first
    return Outcome(taken, dead, [], trouble, unnamed)


def as_sink_error(error: Exception) -> SinkError:
    """Give an error of a sink as it should have been."""
    return error if isinstance(error, SinkError) else SinkError(reason_of(error), retryable=False)


def reason_of(error: Exception) -> str:
    """Say what went wrong in one line; anything but a ``SinkError`` with its type."""
    text = str(error) if isinstance(error, SinkError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
