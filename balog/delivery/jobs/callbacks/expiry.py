"""Expiry: an event is retried until it is too old, whatever the number of attempts."""

from __future__ import annotations

from balog.delivery.document import Callback
from balog.topics import Received

__all__ = ["LEAST_ATTEMPTS", "dead_letter_reason", "next_delay"]

LEAST_ATTEMPTS = 3
"""Attempts of an event that is too old from the start, such as a dead letter that was redriven after days."""


def next_delay(
    config: Callback, message: Received, retry_after: float | None, now: float, failed: int | None = None
) -> float | None:
    """Return the seconds until the next attempt; None when this one was the last.

    The delay grows from ``retry.first`` to ``retry.longest`` with full jitter. A longer ``Retry-After`` of the endpoint
    wins. The last attempt is at ``give_up``.

    Args:
        message: as it was received for the attempt that failed.
        now: seconds since the epoch.
        failed: failed attempts including this one; None counts all deliveries as attempts.
    """
    left = message.published + config.give_up - now
    if left <= 0 and (message.attempts if failed is None else failed) >= LEAST_ATTEMPTS:
        return None
    delay = config.retry.backoff().delay(message.attempts)
    if left > 0:
        delay = min(delay, left)
    return max(delay, retry_after or 0.0)


def dead_letter_reason(message: Received, reason: str, now: float) -> str:
    """Return the reason of an expired event's dead letter."""
    hours = max(0.0, now - message.published) / 3600
    times = "1 attempt" if message.attempts == 1 else f"{message.attempts} attempts"
    return f"given up {hours:.1f} h after it came, {times}: {reason}"
