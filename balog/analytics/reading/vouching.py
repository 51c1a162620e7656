"""Tell by their bytes that lines are events as balog writes them: without a parser, some forty bytes of each.

balog writes the same keys in the same order and without white space::

    {"schema":"1.0.0","header":{"id":"LG…","channel":"…","timestamp":"2026-11-20T07:46:12.123456Z","level":"INFO",
     "composition":false,"context":{…}},"payload":{…}}

Lines that begin so, up to the context's brace, have a header with all that it needs, each of it lawful; numpy looks at
thousands of them at once. What only a parser can tell is left to the one that reads the lines anyway, asked strictly:
that the rest is JSON, that no known key comes again, that the date is in the calendar, and that there is a payload.
"""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

__all__ = ["canonical_events"]

_START = b'{"schema":"1.0.0","header":{"id":"'
_CHANNEL = b'","channel":"'
_STAMP = b'","timestamp":"'
_SHAPE = b"dddd-dd-ddTdd:dd:dd.ddddddZ"
_DIGITS = [place for place, sign in enumerate(_SHAPE) if sign == ord("d")]
_SIGNS = [place for place, sign in enumerate(_SHAPE) if sign != ord("d")]
_LEVEL = b'","level":"'
_LEVELS = (b"INFO", b"DEBUG", b"WARNING", b"ERROR", b"CRITICAL")
_CONTEXTS = (b'","composition":false,"context":{', b'","composition":true,"context":{')
_LONGEST_ID, _LONGEST_CHANNEL = 60, 48
_REACH = sum(map(len, (_START, _CHANNEL, _STAMP, _SHAPE, _LEVEL, _LEVELS[-1], _CONTEXTS[0])))
_REACH += _LONGEST_ID + _LONGEST_CHANNEL + 8
_PIECE = 1024 * 1024  # bytes at a time, so that what is looked at stays in the processor's cache
_SHALLOW = 1200
"""Bytes of a line in which nothing can be nested so deeply that a recursive parser gives up."""


class _Anything(Struct, frozen=True, gc=False):
    """Any JSON object."""


_object = msgspec.json.Decoder(_Anything)


def canonical_events(data: memoryview) -> int | None:
    """Give the number of lines when all are as balog writes events, as far as bytes tell; else None.

    Args:
        data: whole lines, each with its newline.
    """
    text = np.frombuffer(data, np.uint8)
    width = _id_width(data[: len(_START) + _LONGEST_ID + 1])
    at = count = 0
    while at < len(text):
        ends = np.flatnonzero(text[at : at + _PIECE] == ord("\n")) + at
        if not len(ends):
            return None  # a very long line
        starts = np.empty_like(ends)
        starts[0], starts[1:] = at, ends[:-1] + 1
        if not _are_sound(data, starts, ends - starts):
            return None
        inside = int(np.searchsorted(starts, len(text) - _REACH, side="right"))
        if inside and not _begin_well(text, starts[:inside], width):
            return None
        if inside < len(starts):  # the last lines: beyond them is nothing to look at
            rest = np.zeros(len(text) - starts[inside] + _REACH, np.uint8)
            rest[:-_REACH] = text[starts[inside] :]
            if not _begin_well(rest, starts[inside:] - starts[inside], width):
                return None
        at, count = int(ends[-1]) + 1, count + len(ends)
    return count or None


def _id_width(first: memoryview) -> int:
    return max(bytes(first).find(b'"', len(_START)) - len(_START), 0)


def _begin_well(text: NDArray[np.uint8], starts: NDArray[np.intp], width: int) -> bool:
    """Tell whether each line begins as an event does; ids are all ``width`` characters long."""
    if width < 3:
        return False
    at = starts
    if not _is(text, at, _START):
        return False
    at = at + len(_START)
    if not (_is(text, at, b"LG") and _are_alphanumeric(_windows(text, at, width)) and _is(text, at + width, _CHANNEL)):
        return False
    at = at + (width + len(_CHANNEL))
    channel = _windows(text, at, _LONGEST_CHANNEL)
    size = (channel == ord('"')).argmax(axis=1)  # 0 for an empty channel, and for one that is longer than the window
    if not size.all() or (channel == ord("\\")).any():  # an escape might hide a quote
        return False
    at = at + size
    if not (_is(text, at, _STAMP) and _is_clock(_windows(text, at + len(_STAMP), len(_SHAPE)))):
        return False
    at = at + (len(_STAMP) + len(_SHAPE))
    if not _is(text, at, _LEVEL):
        return False
    at = at + len(_LEVEL)
    size = np.zeros_like(size)
    word = _windows(text, at, 8).view(np.uint64)[:, 0]
    for level in _LEVELS:
        size[word == np.frombuffer(level + b'","comp'[: 8 - len(level)], np.uint64)] = len(level)
    if not size.all():
        return False
    at = at + size
    return _is(text, at, _CONTEXTS[0]) or all(
        any(bytes(text[place : place + len(words)]) == words for words in _CONTEXTS) for place in at
    )


def _windows(text: NDArray[np.uint8], starts: NDArray[np.intp], width: int) -> NDArray[np.uint8]:
    """Give ``width`` bytes from each start, a row each."""
    whole = np.ndarray((len(text) - width + 1,), f"S{width}", text.data, strides=(1,))
    seen: NDArray[np.uint8] = whole[starts].view(np.uint8).reshape(len(starts), width)
    return seen


def _is(text: NDArray[np.uint8], starts: NDArray[np.intp], words: bytes) -> bool:
    return bool((_windows(text, starts, len(words)) == np.frombuffer(words, np.uint8)).all())


def _are_alphanumeric(seen: NDArray[np.uint8]) -> bool:
    digits, letters = seen - ord("0"), (seen | 32) - ord("a")  # what is below wraps round to a large number
    return bool(((digits < 10) | (letters < 26)).all())


def _is_clock(stamp: NDArray[np.uint8]) -> bool:
    """Tell whether years have four digits, and times of day are on the clock; the calendar is the parser's."""
    digits = stamp[:, _DIGITS]
    hour, nine, six = digits[:, 8], ord("9"), ord("6")
    return bool(
        (stamp[:, _SIGNS] == np.frombuffer(_SHAPE, np.uint8)[_SIGNS]).all()
        and ((digits >= ord("0")) & (digits <= nine)).all()
        and (digits[:, 0] > ord("0")).all()
        and ((hour < ord("2")) | ((hour == ord("2")) & (digits[:, 9] < ord("4")))).all()
        and (digits[:, 10] < six).all()
        and (digits[:, 12] < six).all()
    )


def _are_sound(data: memoryview, starts: NDArray[np.intp], lengths: NDArray[np.intp]) -> bool:
    """Tell whether the long lines among them can be read by a parser that nests as deeply as they do."""
    try:
        for number in (lengths > _SHALLOW).nonzero()[0]:
            _object.decode(data[starts[number] : starts[number] + lengths[number]])
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
