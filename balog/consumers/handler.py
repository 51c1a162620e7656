"""A consumer's handler as one run calls it, with the engine's defaults filled in."""

from __future__ import annotations

from collections.abc import Callable

from balog.backoff import Backoff
from balog.consumers.consumer import BatchOptions, Consumer

__all__ = ["Handler"]


class Handler:
    """The function that one consumer of a run calls, and its limits.

    Args:
        consumer: declares the handler.
        function: handles one event, or a list of events when the consumer takes batches.
        max_attempts: failed calls for an event after which the event becomes a dead letter.
        backoff: the delays between attempts.
        max_calls: concurrent calls; None for as many as there are workers.
    """

    def __init__(
        self,
        consumer: Consumer,
        function: Callable[..., object],
        max_attempts: int,
        backoff: Backoff,
        max_calls: int | None,
    ) -> None:
        self.consumer = consumer
        self.name = consumer.name
        self.function = function
        self.max_attempts = max_attempts
        self.backoff = backoff
        self.max_calls = max_calls
        self.batch: BatchOptions | None = consumer.batch
        self.timeout: float | None = consumer.timeout
        self.is_async = consumer.is_async
        self.takes_messages = consumer.takes_messages

    def delay(self, attempt: int) -> float:
        """Return the seconds between this failed attempt and the next one, with full jitter."""
        return self.backoff.delay(attempt)
