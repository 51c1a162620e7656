"""Recognize lines of a Singer stream by their prefixes, so that most of them need no parsing.

Singer libraries write the type first and a RECORD's stream next. A line that begins so is known by its first bytes; any
other is looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec import Struct

from balog.common.duplicate_keys import has_duplicate_member

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


_Prefix = TypeVar("_Prefix")


class _Type(Struct):
    type: str


class Head(Struct):
    """The beginning of a message."""

    type: str
    stream: str = ""


type_decoder = msgspec.json.Decoder(_Type)
_head = msgspec.json.Decoder(Head)
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_FEW = 8  # names that are quicker searched for one by one
_escaped_char = re.compile(rb"\\u00[2-7]").search


class Passing:
    """Checks that lines with the prefix of unedited messages are such messages for every reader.

    Of a key that comes twice, readers of JSON take the last value or the first. Some take several messages on a line,
    or begin a new line at a carriage return.

    Args:
        types: the message types that are edited.
        streams: the streams whose RECORDs are; None for all.
    """

    def __init__(self, types: Iterable[str], streams: Iterable[str] | None) -> None:
        self._types = frozenset(types)
        self._streams = None if streams is None else frozenset(streams)
        self._names = [b'"%b"' % json.dumps(name)[1:-1].encode() for name in sorted(self._streams or ())]
        self._is_plain = all(name.isascii() and name.isprintable() for name in self._streams or ())
        self._has_slash = any("/" in name for name in self._streams or ())

    def mentions(self, buffer: bytearray, start: int, end: int) -> bool:
        """Return whether lines may name a stream whose RECORDs are edited; several GB/s if they do not."""
        if self._streams is None or len(self._names) > _FEW or not self._is_plain:
            return True
        if any(buffer.find(name, start, end) >= 0 for name in self._names):
            return True
        if self._has_slash and buffer.find(b"\\/", start, end) >= 0:
            return True
        return buffer.find(b"\\u00", start, end) >= 0 and _escaped_char(buffer, start, end) is not None

    def is_plain(self, lines: bytes) -> bool:
        """Return whether all lines may pass, at about 800 MB/s; after False, check line by line."""
        if b"\r" in lines:
            lines = lines.replace(b"\r\n", b"\n")
            if b"\r" in lines:
                return False
        prefixes = decode_block(_head, lines)
        if prefixes is None:
            return False
        return not any(
            self._is_edited(kind, stream) for kind, stream in {(head.type, head.stream) for head in prefixes}
        )

    def may_pass(self, line: bytes) -> bool:
        """Return whether one line may pass. An unreadable line passes if it names no second type."""
        end = line[-2:] if line.endswith(b"\r\n") else line[-1:] if line.endswith(b"\n") else b""
        body = line[: len(line) - len(end)]
        if b"\r" in body:
            return False
        head = read_head(body)
        if head is None:
            return body.count(b'"type"') <= 1 and body.count(b'"stream"') <= 1 and b"\\u00" not in body
        return not self._is_edited(head.type, head.stream)

    def _is_edited(self, kind: str, stream: str) -> bool:
        kind = kind.upper()
        return kind in self._types and (kind != "RECORD" or self._streams is None or stream in self._streams)


def is_one_message(line: bytes) -> bool:
    """Return whether every reader finds the same single message, type and stream in a readable line.

    A LOG whose second ``type`` is its level, as the broker proposal's own examples have it, is one.
    """
    if b"\r" in line and b"\r" in line.rstrip(b"\r\n"):
        return False
    if line.count(b'"type"') == 1 and line.count(b'"stream"') <= 1 and b"\\u00" not in line:
        return True
    try:
        if not has_duplicate_member(line):
            return True
        pairs = json.loads(line, object_pairs_hook=list)
    except (*_REFUSALS, ValueError):
        return False
    types = {kind.upper() if isinstance(kind, str) else "" for key, kind in pairs if key == "type"}
    streams = sum(key == "stream" for key, _ in pairs)
    return streams <= 1 and (len(types) == 1 or types.isdisjoint(TYPES))


def usual_head(edited: Iterable[str] = (), streams: Iterable[str] | None = None) -> bytes:
    """Return a regular expression for the prefixes of lines that pass unexamined.

    Args:
        edited: message types that somebody changes, so that their lines must be looked at.
        streams: when RECORD is one of ``edited``, the only streams whose RECORDs are changed; None for all of them. A
            name that JSON may write in several ways is looked at.
    """
    passing = "|".join(kind for kind in TYPES if kind not in set(edited))
    prefixes = [rb'\{"type": ?"(?:%b)"' % passing.encode()] if passing else []
    if streams is not None and "RECORD" in set(edited):
        names = b"|".join(re.escape(name.encode()) for name in sorted(streams))
        prefixes.append(rb'\{"type": ?"RECORD", ?"stream": ?"(?!(?:%b)"|[^"\\\n]*\\)' % names)
    return rb"(?:%b)" % b"|".join(prefixes) if prefixes else rb"(?!)"


def decode_block(decoder: msgspec.json.Decoder[_Prefix], lines: bytes) -> list[_Prefix] | None:
    """Decode lines that each hold one message of UTF-8, at about 800 MB/s; return None if one does not."""
    try:
        if not lines.isascii():
            str(lines, "utf-8")
        prefixes = decoder.decode_lines(lines)
    except _REFUSALS:
        return None
    # No message goes on after "}", a newline and "{": each line holds whole ones, and as many as lines is one each.
    count = lines.count(b"}\n{") + 1
    return prefixes if len(prefixes) == count == lines.count(b"\n") + (not lines.endswith(b"\n")) else None


def kind_of(line: bytes | memoryview) -> str | None:
    """Return a message's type in upper case; None for a line that is not an object with a type."""
    try:
        return type_decoder.decode(line).type.upper()
    except _REFUSALS:
        return None


def read_head(line: bytes) -> Head | None:
    """Return a message's type and stream; None for a line that is not an object with a type."""
    try:
        return _head.decode(line)
    except _REFUSALS:
        return None


def split_lines(block: bytes) -> list[bytes]:
    """Split at newlines only; ``splitlines`` also splits at a carriage return."""
    return re.findall(rb"[^\n]*\n|[^\n]+", block)
