"""Dead letters: events that a sink refused for good, on disk with the reason.

One JSON object per line: ``sink``, ``reason``, ``time``, and the whole ``event``; or ``raw``, the text of a line that
is not an event, for example after a disk error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from balog.common.storage.local_files import make_folder
from balog.delivery.segment import LinesFile

_MAX_FILE_BYTES = 16 << 20
_MAX_REASON = 500
_MAX_RAW = 1 << 20


class SinkDeadLetter(Struct):
    """A line of the file. ``time`` is when the sink refused the event (RFC 3339)."""

    sink: str
    reason: str
    time: str
    event: Raw | UnsetType = UNSET
    raw: str | UnsetType = UNSET

    @classmethod
    def new(cls, sink: str, reason: str, body: bytes, *, is_event: bool = True) -> SinkDeadLetter:
        """Return a dead letter for the bytes of an event, or of a line that is not an event."""
        time = datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
        reason = reason[:_MAX_REASON]
        if is_event:
            return cls(sink, reason, time, event=Raw(body))
        return cls(sink, reason, time, raw=body[:_MAX_RAW].decode("utf-8", "backslashreplace"))


class SinkDeadLetters:
    """The dead letters of one sink. The folder is created with the first one.

    Args:
        has_room: returns whether so many more bytes may be written.
        prepare: creates the sink's folder before the first dead letter is written.

    Attributes:
        has_any: whether a dead letter was added.
    """

    def __init__(self, folder: Path, has_room: Callable[[int], bool], prepare: Callable[[], None]) -> None:
        self.folder = folder
        self.has_any = False
        self._has_room = has_room
        self._prepare = prepare
        self._file: LinesFile | None = None

    def add(self, dead_letters: Sequence[SinkDeadLetter]) -> bool:
        """Append dead letters; they are on disk when this returns. Return False if there is no room.

        Raises:
            OSError: they can't be written.
        """
        lines = [msgspec.json.encode(dead_letter) for dead_letter in dead_letters]
        if not self._has_room(sum(map(len, lines)) + len(lines)):
            return False
        if self._file is not None and self._file.size >= _MAX_FILE_BYTES:
            self.release()
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
        self.has_any = True
        return True

    def release(self) -> None:
        """Close the file; the next dead letter begins another one."""
        if self._file is not None:
            self._file.release()
            self._file = None
