"""Suspects: events that were delivered more often than a consumer may try them, though nobody knows of a failure.

A handler that kills its process leaves no other trace than the count of deliveries, and so do events that were only in
the same process. To tell them apart, a suspect runs while no other one does, and the ledger is told before that it has
begun and after that it is through. One that began so several times and never came back is given up.
"""

from __future__ import annotations

import re

__all__ = ["MAX_BEGUN", "MAX_UNEXPLAINED", "begun", "read_begun"]

MAX_BEGUN = 3
"""Times that a suspect may begin without an end: once can be somebody's kill -9."""

MAX_UNEXPLAINED = 100
"""Deliveries beyond a consumer's limit after which an event is given up, should the ledger forget."""

_BEGUN = re.compile(r"begun (\d{1,9})")


def begun(times: int) -> str:
    """Give what the ledger holds, in place of a reason, of a consumer that began so often and has not come back."""
    return f"begun {times}"


def read_begun(reason: str) -> int | None:
    """Give how often a consumer began; None when the ledger's reason is one."""
    found = _BEGUN.fullmatch(reason)
    return int(found[1]) if found else None
