"""Detects the form of a file by its first lines, and reads a slice of it as blocks or lines of events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import msgspec
from msgspec import Raw

from balog.analytics.reading.blocks import BadLine, Block, Damage, read_blocks
from balog.analytics.reading.forms.converter import EventsConverter, FormConverter, Origin, Part
from balog.analytics.reading.forms.line_converters import OldConverter, SingerConverter, StderrConverter
from balog.analytics.reading.forms.sqs import SqsConverter
from balog.analytics.reading.remote import StoragePool
from balog.analytics.reading.tasks import Slice
from balog.analytics.reading.validation import try_decode
from balog.log_lines.dialects import read_line
from balog.log_lines.json_lines import LEVEL_KEYS

HEAD = 64 * 1024
"""Bytes of a file, decompressed, for the detection."""

_LINES = 100
_MESSAGES = frozenset({"RECORD", "SCHEMA", "STATE", "ACTIVATE_VERSION", "BATCH", "LOG"})
_EVENTS_ENDING = re.compile(r"\.(?:jsonl|ndjson)(?:\.(?:gz|zst))?$", re.IGNORECASE)
_OLD = re.compile(rb"[\d:.TZ+ -]{4,40}\t[^\t]+\t\s*\{")

# A line that is longer than these bytes, and documents of several lines, are recognized by their first keys.
_BEGUN = (
    (re.compile(rb'\s*[\[{]\s*(?:\{\s*)?"(?:Messages|MessageId|ReceiptHandle|Body)"'), "sqs"),
    (
        re.compile(rb'\s*\{\s*"type"\s*:\s*"(?:RECORD|SCHEMA|STATE|ACTIVATE_VERSION|BATCH|LOG)"', re.IGNORECASE),
        "singer",
    ),
    (re.compile(rb'\s*\{[ \t]*"(?:schema|header|payload)"\s*:'), "events"),
    (re.compile(rb'\s*\{\s*\n\s*"(?:schema|header|payload)"\s*:'), "sqs"),
)

_members = msgspec.json.Decoder(dict[str, Raw]).decode


def detect(head: bytes, path: str) -> str:
    """Return the form of a file: that of the first line that has one.

    By default it is ``stderr`` for text that is not called ``.jsonl`` or ``.ndjson``, otherwise ``events``.

    Args:
        head: the file's first bytes, decompressed; ``HEAD`` of them are enough.
        path: the file's path.
    """
    head = head[:HEAD]
    begun = next((form for pattern, form in _BEGUN if pattern.match(head)), None)
    *lines, rest = head.split(b"\n", _LINES)
    for line in lines if len(lines) == _LINES or len(head) == HEAD else [*lines, rest]:
        if form := _form_of(line):
            return form
        if begun and line.strip():
            return begun
    if begun:
        return begun
    return "events" if _EVENTS_ENDING.search(path) or not _is_text(head) else "stderr"


def _form_of(line: bytes) -> str | None:
    if line.lstrip()[:1] in (b"{", b"["):
        if (members := try_decode(_members, line)) is not None:
            return _form_of_document(members, line)
    elif _OLD.match(line):
        return "old"
    text = line.decode("utf-8", "replace").rstrip("\r")
    return "stderr" if text.startswith("Traceback (most recent call last):") or read_line(text) else None


def _form_of_document(members: dict[str, Raw], line: bytes) -> str | None:
    if {"header", "payload"} <= members.keys():
        return "events"
    if "Messages" in members or {"MessageId", "Body"} <= members.keys():
        return "sqs"
    if str(try_decode(msgspec.json.decode, members.get("type", Raw()))).upper() in _MESSAGES:
        return "singer"
    if members.keys() & {"header", "payload"}:
        return "events"
    if not members.keys() & LEVEL_KEYS:
        return None
    return "stderr" if read_line(line.decode("utf-8", "replace").rstrip("\r")) else None


def _is_text(head: bytes) -> bool:
    """Return whether this can be the beginning of a text."""
    if not head.strip() or b"\0" in head:
        return False
    try:
        head[: HEAD - 4].decode()  # the last character may be truncated
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 4
    return True


def can_split(form: str, head: bytes) -> bool:
    """Return whether a file of this form can be read from any line on.

    That is not possible for captures of stderr, where a traceback belongs to the line before it, and for documents of
    several lines.
    """
    if form != "sqs":
        return form != "stderr"
    line, newline, _ = head.lstrip().partition(b"\n")
    # a long line is not a document that was formatted for people
    return try_decode(_members, line) is not None or (not newline and len(head) >= HEAD)


_CONVERTERS: dict[str, type[FormConverter]] = {
    "events": EventsConverter,
    "sqs": SqsConverter,
    "old": OldConverter,
    "singer": SingerConverter,
    "stderr": StderrConverter,
}


def read_parts(
    piece: Slice, buffer: bytearray, storages: StoragePool, form: str = "auto", is_growth: bool = False
) -> Iterator[Part]:
    """Yield the content of a slice: blocks for a file of events, otherwise ``EventLines``, and ``BadLine``.

    If a file can't be read from the middle, its first slice has the whole file.

    Args:
        piece: the slice.
        buffer: see ``balog.analytics.reading.blocks.new_buffer``.
        storages: opens stores.
        form: the form of the file, see ``FORMS``.
        is_growth: the slice was added to a file, and only the slice is read.
    """
    parts = read_blocks(piece, buffer, storages)
    if form in ("auto", "sqs", "stderr"):
        # The first lines decide the form of the whole file.
        begun, head = _head(read_blocks(Slice(piece.path, 0, HEAD), buffer, storages) if piece.start else parts)
        form = detect(head, piece.path) if form == "auto" else form
        if is_growth or can_split(form, head) or (piece.start, piece.end) == (0, None):
            parts = parts if piece.start else chain(begun, parts)
        elif piece.start:
            return
        else:
            parts = read_blocks(Slice(piece.path), buffer, storages)
    converter = _CONVERTERS[form](Origin(piece.path, storages))
    damage = None
    for part in parts:
        if isinstance(part, Block):
            yield from converter.feed(part)
        elif isinstance(part, BadLine):
            yield from converter.reject(part)
        else:
            damage = part
    yield from converter.close(damage)


def _head(parts: Iterator[Block | BadLine | Damage]) -> tuple[list[Block | BadLine | Damage], bytes]:
    """Read up to the first block; return what was read, and the beginning of that block."""
    begun: list[Block | BadLine | Damage] = []
    for part in parts:
        begun.append(part)
        if isinstance(part, Block):
            return begun, bytes(part.data[:HEAD])
    return begun, b"".join(part.tail[:HEAD] for part in begun if isinstance(part, Damage))
