"""``Retry-After``: how long a server wants to be left alone."""

from __future__ import annotations

import time

__all__ = ["read_retry_after"]


def read_retry_after(value: str | None, now: float | None = None) -> float | None:
    """Read the field's value (RFC 9110, 10.2.3), seconds or a date; None when it is neither.

    Args:
        value: as the server wrote it; None when it did not.
        now: seconds since the epoch, from which a date is seen.

    Returns:
        Seconds, at least 0, and as many as the server likes.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime  # slow to import, and seldom needed

        try:
            at = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        if at.tzinfo is None:  # -0000, by which a server says that it means UTC and knows no zone
            from datetime import timezone

            at = at.replace(tzinfo=timezone.utc)
        seconds = at.timestamp() - (time.time() if now is None else now)
    return max(seconds, 0.0) if seconds == seconds else None
