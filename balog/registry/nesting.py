"""Measures the nesting depth of JSON without decoding it."""

from __future__ import annotations

from itertools import accumulate

_NO_MARKS = bytes(set(range(256)) - set(b'{}[]"'))
_STEPS = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}


def is_deeper(document: bytes, limit: int) -> bool:
    """Return whether JSON has more than ``limit`` objects and arrays inside each other."""
    if document.count(b"{") + document.count(b"[") <= limit:
        return False
    if b"\\" in document:
        document = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = document.translate(None, _NO_MARKS)
    outside = b"".join(marks.split(b'"')[::2])  # every second part lies between two strings
    return max(accumulate(map(_STEPS.__getitem__, outside)), default=0) > limit
