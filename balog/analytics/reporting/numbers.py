"""Numbers of the report as JSON can represent them, also those of events with absurd values."""

from __future__ import annotations

import math
from decimal import Decimal


def finite(number: float | None) -> float | None:
    """Return a number; None if it is beyond the range of doubles or not a number."""
    return number if number is not None and math.isfinite(number) else None


def whole(number: float | Decimal | None) -> int | float | None:
    """Return a total without its fraction: as an ``int``, beyond 64 bits as a double; None if it is not finite."""
    if number is None or not math.isfinite(number):
        return None
    return int(number) if -(2**63) <= number < 2**63 else float(number)
