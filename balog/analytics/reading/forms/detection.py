"""Detects the form of a file by its first lines."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from balog.singer.dialects import read_line
from balog.singer.log_json import LEVEL_KEYS

HEAD = 64 * 1024
"""Bytes of a file, decompressed, for the detection."""

_LINES = 100
_MESSAGES = frozenset({"RECORD", "SCHEMA", "STATE", "ACTIVATE_VERSION", "BATCH", "LOG"})
_EVENTS_ENDING = re.compile(r"\.(?:jsonl|ndjson)(?:\.(?:gz|zst|bz2))?$", re.IGNORECASE)
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
        try:
            members = _members(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass
        else:
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
    if str(_text(members.get("type"))).upper() in _MESSAGES:
        return "singer"
    if members.keys() & {"header", "payload"}:
        return "events"
    if not members.keys() & LEVEL_KEYS:
        return None
    return "stderr" if read_line(line.decode("utf-8", "replace").rstrip("\r")) else None


def _text(raw: Raw | None) -> Any:
    try:
        return None if raw is None else msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


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
    try:
        _members(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return not newline and len(head) >= HEAD  # such a long line is not a document that was formatted for people
    return True
