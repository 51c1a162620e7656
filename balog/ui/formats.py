"""Formats numbers and texts for people, on the page and in the terminal."""

from __future__ import annotations

import math
from datetime import datetime

from balog.common import text

_NOTHING = "–"


def count(number: float | None) -> str:
    """Format a whole number: ``12,345``; one beyond 64 bits with four significant digits."""
    return f"{number:,}" if isinstance(number, int) else amount(number)


def amount(number: float | None) -> str:
    """Format a number with four significant digits, or a whole number in full: ``34,099,843``, ``0.04975``."""
    if number is None:
        return _NOTHING
    if not math.isfinite(number) or (number and not 1e-4 <= abs(number) < 1e15):
        return f"{number:.4g}"
    if number == int(number):
        return f"{int(number):,}"
    digits = max(0, 3 - math.floor(math.log10(abs(number))))
    return f"{number:,.{digits}f}"


def seconds(number: float | None) -> str:
    """Format a duration in a suitable unit: ``49.75 ms``, ``1.250 s``."""
    if number is None:
        return _NOTHING
    size = abs(number)
    if size == 0 or not math.isfinite(number):
        return f"{number:.4g} s"
    if size < 1e-3:
        return f"{amount(number * 1e6)} µs"
    if size < 1:
        return f"{amount(number * 1e3)} ms"
    return f"{amount(number)} s"


def span(number: float | None) -> str:
    """Format a duration of up to days: ``3.2 s``, ``10 min 25 s``, ``2 h 05 min``, ``3 d 4 h``."""
    if number is None or not number < 1e10:  # more than three centuries
        return seconds(number)
    if number < 60:
        return f"{number:.1f} s" if number >= 0.0995 else seconds(number)
    minutes, rest = divmod(round(number), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24} h"


def size(number: float | None) -> str:
    """Format a size in a suitable unit: ``512 B``, ``1.204 MB``."""
    if number is None:
        return _NOTHING
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(number) >= factor:
            return f"{amount(number / factor)} {unit}"
    return f"{amount(number)} B"


def length(hours: float) -> str:
    """Format a number of hours: ``5 hours``, ``9 days``, ``2 days 3 hours``."""
    days, rest = divmod(round(hours), 24) if hours >= 48 else (0, round(hours))
    parts = [f"{n:,} {unit}{'' if n == 1 else 's'}" for n, unit in ((days, "day"), (rest, "hour")) if n]
    return " ".join(parts) or "less than an hour"


def minute(moment: datetime) -> str:
    """Format a time to the minute: ``2026-10-09 22:22``."""
    return when(moment)[:16]


def when(moment: datetime) -> str:
    """Format a time to the second: ``2026-10-09 22:22:00``."""
    return moment.isoformat(" ", "seconds").partition("+")[0]


def printable(value: str | None) -> str:
    """Replace characters that can't be printed, such as control characters; None becomes a dash."""
    return text.printable(value or _NOTHING)
