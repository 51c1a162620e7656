"""Dates, and the format ``instant`` of configs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def is_date(text: str) -> bool:
    """Return whether a text is an RFC 3339 ``full-date`` and exists in the calendar."""
    return bool(_DATE.fullmatch(text)) and _holds(date.fromisoformat, text)


def is_instant(text: str) -> bool:
    """Return whether a text is a date or a date and time, with or without an offset, as ``start_date`` may be."""
    if is_date(text):
        return True
    return (
        bool(_DATE.match(text)) and len(text) > 10 and _holds(datetime.fromisoformat, re.sub("[Zz]$", "+00:00", text))
    )


def _holds(make: Callable[[str], object], text: str) -> bool:
    try:
        make(text)
    except ValueError:
        return False
    return True
