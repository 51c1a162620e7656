"""A file of rejected Singer messages: JSON lines, each with the time and the reason.

    {"time":"2026-11-20T07:46:12.123456Z","reason":"a RECORD cannot be read: …","raw":"{\\"type\\": \\"RECORD\\", …"}

``raw`` is the line without its newline; bytes that are no UTF-8 are in ``raw_base64`` instead.
"""

from __future__ import annotations

import base64
import os
import stat
import time
from contextlib import suppress

import msgspec

from balog.common.errors import BalogError, ConfigError
from balog.common.local_path import local_path
from balog.common.storage.local_files import lock, sync, unlock, write_all
from balog.event import format_timestamp


class QuarantineError(BalogError):
    """A line can't be written to the quarantine file, and would be lost."""


class QuarantineFile:
    """An open quarantine file, readable by its owner only. Several processes may append to it, whole lines each.

    Args:
        path: the file; its folder is made.
        max_bytes: how large it may become.
        field: what the path is called in the config, for errors.

    Attributes:
        count: lines put there so far by this one.

    Raises:
        ConfigError: the file cannot be opened for writing.
    """

    def __init__(self, path: str, max_bytes: int, field: str = "$.quarantine.path") -> None:
        self.path = path = local_path(path, field)
        self._max_bytes = max_bytes
        self.count = 0
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"{path} cannot be opened: {reason}", path=field) from None
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise ConfigError(f"{path} is no file; name one that can be appended to", path=field)

    def put(self, reason: str, line: bytes) -> None:
        """Append a line with the reason, a clause without any data of the line.

        Raises:
            QuarantineError: it cannot be kept, because the file is full or fails.
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
            raise QuarantineError(f"the quarantine {self.path} failed: {error.strerror or error}; {reason}") from None
        self.count += 1

    def _append(self, entry: bytes) -> None:
        lock(self._file)
        try:
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":  # another writer was killed within its line
                entry = b"\n" + entry
            if size + len(entry) > self._max_bytes:
                raise QuarantineError(
                    f"the quarantine {self.path} is full, {self._max_bytes} bytes; look at it and move it away"
                )
            try:
                write_all(self._file, entry)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file, size)
                raise
        finally:
            unlock(self._file)

    def close(self) -> None:
        """Write the file durably and close it. Called once.

        Raises:
            QuarantineError: it is not durable.
        """
        try:
            if self.count:
                sync(self._file)
        except OSError as error:
            raise QuarantineError(f"the quarantine {self.path} failed: {error.strerror or error}") from None
        finally:
            os.close(self._file)
