"""Where lines of a stream go that must not go on as they are: a file of JSON lines, each with the time and the reason.

    {"time":"2026-11-20T07:46:12.123456Z","reason":"a RECORD cannot be read: …","raw":"{\\"type\\": \\"RECORD\\", …"}

``raw`` is the line without its newline; bytes that are no UTF-8 are in ``raw_base64`` instead.
"""

from __future__ import annotations

import base64
import fcntl
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from balog.broker.descriptors import write_all
from balog.broker.editing import StreamError
from balog.errors import ConfigError
from balog.event import format_timestamp

__all__ = ["Quarantine", "QuarantineConfig"]


class QuarantineConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Lines that can't be read or changed as the config wants go to a file instead of ending the stream."""

    path: Annotated[str, Meta(min_length=1, description="The file; appended to, readable by its owner only.")]
    max_bytes: Annotated[int, Meta(ge=4096, description="Bytes of the file; when it is full the stream ends.")] = (
        1 << 30
    )


class Quarantine:
    """An open quarantine file. Several brokers may share one; each line is appended whole.

    Args:
        config: where, and how much.
        say: is told the reason of the first line, and at the end how many there were.

    Attributes:
        count: lines put there so far.

    Raises:
        ConfigError: the file cannot be opened for writing.
    """

    def __init__(self, config: QuarantineConfig, say: Callable[[str], None]) -> None:
        self._path = config.path
        self._max_bytes = config.max_bytes
        self._say = say
        self.count = 0
        try:
            os.makedirs(os.path.dirname(config.path) or ".", exist_ok=True)
            self._file = os.open(config.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"{config.path} cannot be opened: {reason}", path="$.quarantine.path") from None
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise ConfigError(f"{config.path} is no file; name one that can be appended to", path="$.quarantine.path")

    def put(self, reason: str, line: bytes) -> None:
        """Keep a line with the reason, a clause that has nothing of the line's data in it.

        Raises:
            StreamError: it cannot be kept, the file being full or failing; the line is in nobody's hands then.
        """
        entry: dict[str, str] = {"time": format_timestamp(time.time_ns()), "reason": reason}
        raw = line.removesuffix(b"\n")
        try:
            entry["raw"] = raw.decode()
        except UnicodeDecodeError:
            entry["raw_base64"] = base64.b64encode(raw).decode()
        try:
            self._append(msgspec.json.encode(entry) + b"\n")
        except OSError as error:
            raise StreamError(f"the quarantine {self._path} failed: {error.strerror or error}; {reason}") from None
        self.count += 1
        if self.count == 1:
            self._say(f"a line went to quarantine, {self._path}: {reason}")

    def _append(self, entry: bytes) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":  # a writer was killed in the middle of its line
                entry = b"\n" + entry
            if size + len(entry) > self._max_bytes:
                raise StreamError(
                    f"the quarantine {self._path} is full, {self._max_bytes} bytes; look at it and move it away"
                )
            try:
                write_all(self._file, memoryview(entry))
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file, size)
                raise
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Make what is there durable, and say how much came. Called once.

        Raises:
            StreamError: it is not durable.
        """
        try:
            if self.count:
                os.fsync(self._file)
        except OSError as error:
            raise StreamError(f"the quarantine {self._path} failed: {error.strerror or error}") from None
        finally:
            os.close(self._file)
        if self.count > 1:
            self._say(f"{self.count} lines went to quarantine, {self._path}")
