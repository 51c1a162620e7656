"""Finds JSON numbers that a double can't represent exactly.

DuckDB rewrites the fractions of a payload as doubles, which changes the text of such payloads. The search is fast when
there are no such numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

DOUBLE_DIGITS = 17
"""Decimal digits that identify any double. A number with more digits was not a double."""

_ALIKE = bytes.maketrans(b"0123456789E", b"0000000000e")
_POINT = ord(".")
_HALF = b"0" * 9  # of more than 17 digits, nine or more are on one side of the point
_DIGITS = re.compile(rb"0*")
_BEFORE = b":,[ \t\r\n"
_LONGEST = 60  # bytes before a point or an exponent to look at


def inexact_lines(text: bytes) -> list[int]:
    """Return the indices of the JSON lines that may have a number that a double would round."""
    alike = text.translate(_ALIKE)  # each digit becomes 0, so that a fast search finds long numbers
    found = [*_fractions(text, alike), *_exponents(text, alike)]
    lines: set[int] = set()
    line = before = 0
    for place in sorted(found):
        line += text.count(b"\n", before, place)
        lines.add(line)
        before = place
    return sorted(lines)


def _fractions(text: bytes, alike: bytes) -> Iterator[int]:
    """Yield the positions of the points of numbers with more than ``DOUBLE_DIGITS`` digits."""
    for needle, behind in ((b"." + _HALF, 0), (_HALF + b".", len(_HALF)), (_HALF + b"e", len(_HALF))):
        place = 0
        while (at := alike.find(needle, place)) >= 0:
            point = at + behind
            head = alike[max(point - _LONGEST, 0) : point]
            start = point - len(head) + len(head.rstrip(b"0"))
            place = _end(alike, point + 1)
            digits = text[start : place if alike[point] == _POINT else point]
            if len(digits) > DOUBLE_DIGITS and len(digits.replace(b".", b"").strip(b"0")) > DOUBLE_DIGITS:
                yield point


def _exponents(text: bytes, alike: bytes) -> Iterator[int]:
    """Yield the positions of exponents of three or more digits."""
    for needle in (b"e000", b"e-000", b"e+000"):
        place = 0
        while (at := alike.find(needle, place)) >= 0:
            place = at + len(needle)
            head = text[max(at - _LONGEST, 0) : at].rstrip(b"0123456789.-")
            if not head or head[-1] in _BEFORE:  # otherwise it is inside a string, as the digits of an id are
                yield at


def _end(alike: bytes, start: int) -> int:
    found = _DIGITS.match(alike, start)
    return start if found is None else found.end()


class _Event(msgspec.Struct):
    payload: msgspec.Raw


_decode = msgspec.json.Decoder(_Event).decode


def exact_payloads(lines: bytes, inexact: Sequence[int], count: int) -> dict[int, str]:
    """Return the original payloads of the lines with such numbers, by row.

    Args:
        lines: lines of events.
        inexact: the result of ``inexact_lines``.
        count: the number of rows that were read; the result is empty if that is not one for each line.
    """
    split = lines.split(b"\n")
    rows = {number: row for row, number in enumerate(number for number, line in enumerate(split) if line.strip())}
    if len(rows) != count:
        return {}
    payloads = ((rows[number], bytes(_decode(split[number]).payload)) for number in inexact)
    # Numbers outside of the payload do not count: its text must not depend on unread fields.
    return {row: str(payload, "utf-8") for row, payload in payloads if inexact_lines(payload)}
