"""The ``Retry-After`` header: seconds until a server accepts requests again."""

from __future__ import annotations

import time

__all__ = ["read_retry_after"]


def read_retry_after(value: str | None, now: float | None = None) -> float | None:
    """Return the seconds of a ``Retry-After`` header (RFC 9110, 10.2.3), which is a number or a date.

    Args:
        value: the header's value; None when there is none.
        now: seconds since the epoch to which a date is compared; the current time when omitted.

    Returns:
        At least 0 seconds, without an upper limit; None if the value is neither a number nor a date.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime  # slow to import, and rarely needed

        try:
            at = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        if at.tzinfo is None:  # -0000: UTC without a known zone
            from datetime import timezone

            at = at.replace(tzinfo=timezone.utc)
        seconds = at.timestamp() - (time.time() if now is None else now)
    return max(seconds, 0.0) if seconds == seconds else None
