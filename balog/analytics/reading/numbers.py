"""Find numbers in JSON that a double can't hold as they are written, fast where there are none.

DuckDB writes a payload's fractions again as doubles, so that its text of those payloads is not the text that came.
"""

from __future__ import annotations

import re

import msgspec

__all__ = ["DOUBLE_DIGITS", "exact_payloads", "has_inexact", "may_be_inexact"]

DOUBLE_DIGITS = 17
"""Decimal digits that tell every double from all others; a number of more was no double."""

_ALIKE = bytes.maketrans(b"0123456789E", b"0000000000e")
_INEXACT = re.compile(
    rb"(?=[1-9][0-9.]{18})[0-9]+\.[0-9]|\.0*[1-9][0-9]{17}|[1-9][0-9]{17,}[eE]|[0-9][eE][+-]?[0-9]{3}"
)
"""What such a number contains; a text in quotes may contain it, too."""


def may_be_inexact(text: bytes) -> bool:
    """Return False, fast, where no number of a JSON text is rounded by a double."""
    alike = text.translate(_ALIKE, b".")
    return b"0" * (DOUBLE_DIGITS + 1) in alike or b"e000" in alike or b"e-000" in alike or b"e+000" in alike


def has_inexact(text: bytes) -> bool:
    """Return False where no number of a JSON text is rounded by a double, and True where one seems to be."""
    return _INEXACT.search(text) is not None


class _Event(msgspec.Struct):
    payload: msgspec.Raw


_decode = msgspec.json.Decoder(_Event).decode


def exact_payloads(lines: bytes, count: int) -> dict[int, str]:
    """Return the payloads, as they are written, of those lines that have a number that a double rounds, by row.

    Args:
        count: rows that were read of these lines; where they are not one for each line, there is no answer.
    """
    if not may_be_inexact(lines):
        return {}
    events = [line for line in lines.split(b"\n") if line.strip()]
    if len(events) != count:
        return {}
    suspects = (row for row, line in enumerate(events) if may_be_inexact(line) and has_inexact(line))
    return {row: str(_decode(events[row]).payload, "utf-8") for row in suspects}
