"""Fingerprints of errors: errors with the same cause have the same fingerprint.

An error is an event of level ERROR or CRITICAL, or a ``consumer_failure`` of any level. Its fingerprint is 16 hex
digits of an MD5 over

- the exception's type, from ``exception.type`` or ``error_type``, or from the end of ``exc_text``;
- its innermost ``_FRAMES`` frames as ``file:function``, without folders and line numbers, so that it is stable over
  releases and machines; a recursive frame counts once;
- the message, masked and truncated to ``LONGEST_MESSAGE`` characters.

The message is the payload's ``message``, ``reason`` or ``problem``, followed by the exception's own message unless it
contains that. For a failed run without a ``problem`` it has the command and exit code. Masking replaces, in this order:
white space (with one space), the part of a URL after the host, email addresses, quoted values, UUIDs, dates and times,
paths, and numbers, including hex numbers and words that mix letters and digits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

LONGEST_MESSAGE = 300
"""Characters of a masked message, and of an example's message."""

ERROR_LEVELS = ("ERROR", "CRITICAL")

ERROR_PAYLOAD = {
    **dict.fromkeys(("message", "reason", "problem"), 2000),
    **dict.fromkeys(("error_type", "command", "signal", "exit_code"), 300),
    "exception": None,
    "exc_text": -20_000,
}
"""The payload's fields for the fingerprint, and how many characters of each are read, from the end if negative."""

_FRAMES = 8
_MOST_FRAMES = 2000  # the innermost frames of a recursion
_LONGEST_TYPE = 300

# Each pattern takes linear time: a long part always begins after a character of another kind.
_QUOTED_FROM, _QUOTED_TO = r"(^|[\s(\[{<=:,])", r"($|[\s)\]}>=:,.;!?])"
_MASKS = [
    (re.compile(pattern, re.ASCII), instead)
    for pattern, instead in (
        (r"\s+", " "),
        (r"""(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,30}://[^/\s'"?#]*)[/?#][^\s'"]*""", r"\1/<path>"),
        (r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}\.[A-Za-z]{2,}", "<email>"),
        *((rf"{_QUOTED_FROM}{quote}[^{quote}]*{quote}{_QUOTED_TO}", r"\1<value>\2") for quote in "'\"`"),
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<id>"),
        (
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d\b)?)?"
            r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b",
            "<time>",
        ),
        (r"(^|[\s(=:,])(?:~|[A-Za-z]:)?(?:[\\/][\w.@%+~-]+){2,}[\\/]?", r"\1<path>"),
        # an id may have only digits by chance, so everything with digits is replaced
        (r"\b(?:0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8,}|[A-Za-z]+\d+[A-Za-z]\w*|\d+[A-Za-z]+\d\w*)\b", "<n>"),
        (r"(?<=_)(?=[A-Za-z]*\d)[A-Za-z0-9]{8,}\b", "<n>"),  # an id after its prefix: cus_NffrFeUfNV2Hib
        (r"-?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?(?:(?:[nuµm]?s|min|[hd]|[kKMGT]?i?B)\b)?", "<n>"),
    )
]
_LAST_LINE = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*)|:?[ \t]*)$", re.ASCII | re.MULTILINE)
_FRAME = re.compile(r'^ +File "([^"\n]*)", line \d+, in ([^\n]+)$', re.ASCII | re.MULTILINE)
_FOLDERS = re.compile(r".*[/\\]", re.DOTALL)


class ErrorFingerprint(NamedTuple):
    """An error with its fingerprint. ``original`` is the message before masking."""

    fingerprint: str
    error_type: str | None
    message: str
    original: str


def failure(payload: Mapping[str, str | None]) -> ErrorFingerprint:
    """Return the fingerprint of an error from its payload: ``cls_type`` and the fields of ``ERROR_PAYLOAD``."""
    kind, why, frames = _exception(payload.get("exception"), payload.get("exc_text"))
    kind = payload.get("error_type") or kind
    what = payload.get("message") or payload.get("reason") or payload.get("problem") or _ended(payload)
    if why and why not in (what or ""):
        what = f"{what}: {why}" if what else why
    return _fingerprint(kind and kind[:_LONGEST_TYPE], frames, (what or payload.get("cls_type") or "")[:2000])


@lru_cache(maxsize=4096)
def _fingerprint(kind: str | None, frames: tuple[str, ...], original: str) -> ErrorFingerprint:
    message = masked(original)
    made_of = "\n".join((kind or "", *frames, message)).encode("utf-8", "replace")
    fingerprint = hashlib.md5(made_of, usedforsecurity=False).hexdigest()[:16]
    return ErrorFingerprint(fingerprint, kind, message, original[:LONGEST_MESSAGE])


def masked(text: str) -> str:
    """Return a message without the parts that vary between events, truncated to ``LONGEST_MESSAGE``."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text.strip()[:LONGEST_MESSAGE]


def _ended(payload: Mapping[str, str | None]) -> str | None:
    if payload.get("cls_type") != "run":
        return None
    command = payload.get("command") or "the run"
    if signal := payload.get("signal"):
        return f"{command} was ended by {signal}"
    return f"{command} ended with exit code {payload.get('exit_code')}"


def _exception(exception: str | None, trace: str | None) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return an exception's type, message and innermost frames, from its parts or from a traceback as text."""
    if exception:
        try:
            parts = msgspec.json.decode(exception)
        except (msgspec.DecodeError, RecursionError):
            parts = None
        if isinstance(parts, dict):
            frames = parts.get("frames")
            places = [
                (frame.get("file"), frame.get("function"))
                for frame in (frames[-_MOST_FRAMES:] if isinstance(frames, list) else ())
                if isinstance(frame, dict)
            ]
            return _text(parts.get("type")), _text(parts.get("message")), _innermost(places)
    if not trace:
        return None, None, ()
    kind, why = (_LAST_LINE.findall(trace) or [(None, None)])[-1]
    return kind, why, _innermost(_FRAME.findall(trace))


def _innermost(places: Iterable[tuple[Any, Any]]) -> tuple[str, ...]:
    frames: list[str] = []
    for file, function in places:
        frame = f"{_FOLDERS.sub('', _text(file) or '')}:{_text(function) or ''}"
        if not frames or frames[-1] != frame:
            frames.append(frame)
    return tuple(frames[-_FRAMES:])


def _text(value: Any) -> str | None:
    return value[:2000] if isinstance(value, str) else None
