"""Dead letters: events that a sink refused for good, on disk with the reason, for people to look at.

One JSON object a line: ``sink``, ``reason``, ``time``, and the whole ``event``; or ``raw``, the text of a line that is
no event any more, as a failing disk may leave one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from balog.outbound.segment import LinesFile
from balog.storage.local_files import make_folder

__all__ = ["DeadLetter", "DeadLetters"]

_MAX_FILE_BYTES = 16 << 20
_MAX_REASON = 500
_MAX_RAW = 1 << 20


class DeadLetter(Struct):
    """A line of the file. ``time`` is when it was refused, in RFC 3339."""

    sink: str
    reason: str
    time: str
    event: Raw | UnsetType = UNSET
    raw: str | UnsetType = UNSET

    @classmethod
    def new(cls, sink: str, reason: str, body: bytes, is_event: bool) -> DeadLetter:
        """Make one of an event's bytes, or of what was no event."""
        time = datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
        reason = reason[:_MAX_REASON]
        if is_event:
            return cls(sink, reason, time, event=Raw(body))
        return cls(sink, reason, time, raw=body[:_MAX_RAW].decode("utf-8", "backslashreplace"))


class DeadLetters:
    """The dead letters of one sink; nothing is made before there is one.

    Args:
        has_room: tells whether so many bytes more may be written.
        prepare: makes what must be there beside the first letter.
    """

    def __init__(self, folder: Path, has_room: Callable[[int], bool], prepare: Callable[[], None]) -> None:
        self.folder = folder
        self._has_room = has_room
        self._prepare = prepare
        self._file: LinesFile | None = None

    def add(self, letters: Sequence[DeadLetter]) -> bool:
        """Append letters; they are on disk when this returns, or False when there is no room.

        Raises:
            OSError: the disk does not take them.
        """
        lines = [msgspec.json.encode(letter) for letter in letters]
        if not self._has_room(sum(map(len, lines)) + len(lines)):
            return False
        if self._file is not None and self._file.size >= _MAX_FILE_BYTES:
            self.leave()
        if self._file is None:
            self._prepare()
            make_folder(self.folder, 0o700)
            self._file = LinesFile.create(self.folder)
        try:
            self._file.append(lines)
        except OSError:
            if not self._file.size:
                with suppress(OSError):
                    self._file.remove()
                self._file = None
            raise
        return True

    def leave(self) -> None:
        """Close the file; the next letter begins another."""
        if self._file is not None:
            self._file.leave()
            self._file = None
