"""How lines of a Singer stream begin, so that most of them need no reading.

Singer libraries write the type first and a RECORD's stream next. A line that begins so is known by its first bytes; any
other is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec import Struct

__all__ = [
    "TYPES",
    "USUAL_KIND",
    "USUAL_KINDS",
    "kind_of",
    "mentions_log",
    "starts_like_log",
    "starts_like_no_object",
    "usual_head",
]

TYPES = ("RECORD", "SCHEMA", "STATE", "ACTIVATE_VERSION", "BATCH")
"""Every message type that the pipe passes; LOG is the one that it hands out."""

mentions_log = re.compile(rb'"log"', re.IGNORECASE).search
"""Search for a line's type LOG in any case: ``(buffer, start, end)``."""

starts_like_log = re.compile(rb'\s*\{\s*"type"\s*:\s*"log"', re.IGNORECASE).match
starts_like_no_object = re.compile(rb"[ \t\r]*[^ \t\r\n{]").match

USUAL_KIND = rb'(?:\{"type": ?"(%b)")?' % "|".join(TYPES).encode()
"""A regular expression for the beginning that the Singer libraries write, or nothing; its first group is the type."""

USUAL_KINDS = {kind.encode(): kind for kind in TYPES}
"""The type by what ``USUAL_KIND`` found."""


class _Type(Struct):
    type: str


_type = msgspec.json.Decoder(_Type)


def usual_head(edited: Iterable[str] = (), streams: Iterable[str] | None = None) -> bytes:
    """Give a regular expression for the beginnings of lines that pass without a look.

    Args:
        edited: message types that somebody changes, so that their lines must be looked at.
        streams: when RECORD is one of ``edited``, the only streams whose RECORDs are changed; None for all of them. A
            name that JSON may write in several ways is looked at.
    """
    passing = "|".join(kind for kind in TYPES if kind not in set(edited))
    heads = [rb'\{"type": ?"(?:%b)"' % passing.encode()] if passing else []
    if streams is not None and "RECORD" in set(edited):
        names = b"|".join(re.escape(name.encode()) for name in sorted(streams))
        heads.append(rb'\{"type": ?"RECORD", ?"stream": ?"(?!(?:%b)"|[^"\\\n]*\\)' % names)
    return rb"(?:%b)" % b"|".join(heads) if heads else rb"(?!)"


def kind_of(line: bytes | memoryview) -> str | None:
    """Give a message's type in upper case; None for a line that is no object with a type."""
    try:
        return _type.decode(line).type.upper()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
