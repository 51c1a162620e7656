"""Find numbers in JSON that a double can't hold as they are written, fast where there are none.

DuckDB writes a payload's fractions again as doubles, so that its text of those payloads is not the text that came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

__all__ = ["DOUBLE_DIGITS", "exact_payloads", "inexact_lines"]

DOUBLE_DIGITS = 17
"""Decimal digits that tell every double from all others; a number of more was no double."""

_ALIKE = bytes.maketrans(b"0123456789E", b"0000000000e")
_POINT = ord(".")
_HALF = b"0" * 9  # more than 17 digits are nine or more on one side of the point
_DIGITS = re.compile(rb"0*")
_BEFORE = b":,[ \t\r\n"
_LONGEST = 60  # bytes before a point or an exponent that are looked at


def inexact_lines(text: bytes) -> list[int]:
    """Return the numbers of those lines of JSON, from 0, that seem to have a number that a double rounds."""
    alike = text.translate(_ALIKE)  # each digit is 0: long numbers are found as fast as memory is read
    found = [*_fractions(text, alike), *_exponents(text, alike)]
    lines: set[int] = set()
    line = before = 0
    for place in sorted(found):
        line += text.count(b"\n", before, place)
        lines.add(line)
        before = place
    return sorted(lines)


def _fractions(text: bytes, alike: bytes) -> Iterator[int]:
    """Yield where numbers of more than ``DOUBLE_DIGITS`` have their points."""
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
    """Yield where numbers have an exponent of three digits or more."""
    for needle in (b"e000", b"e-000", b"e+000"):
        place = 0
        while (at := alike.find(needle, place)) >= 0:
            place = at + len(needle)
            head = text[max(at - _LONGEST, 0) : at].rstrip(b"0123456789.-")
            if not head or head[-1] in _BEFORE:  # else it is within a text, as the digits of an id are
                yield at


def _end(alike: bytes, start: int) -> int:
    found = _DIGITS.match(alike, start)
    return start if found is None else found.end()


class _Event(msgspec.Struct):
    payload: msgspec.Raw


_decode = msgspec.json.Decoder(_Event).decode


def exact_payloads(lines: bytes, inexact: Sequence[int], count: int) -> dict[int, str]:
    """Return the payloads of some lines of events, as they are written, by row; only those that have such a number.

    Args:
        inexact: what ``inexact_lines`` found.
        count: rows that were read of all lines; where they are not one for each line, there is no answer.
    """
    split = lines.split(b"\n")
    rows = {number: row for row, number in enumerate(number for number, line in enumerate(split) if line.strip())}
    if len(rows) != count:
        return {}
    payloads = ((rows[number], bytes(_decode(split[number]).payload)) for number in inexact)
    # A number beside the payload does not count: the text of a payload must not depend on what is not read.
    return {row: str(payload, "utf-8") for row, payload in payloads if inexact_lines(payload)}
