"""Events into a file, one per line."""

from __future__ import annotations

import os
import stat
import threading
import weakref

from balog.common.local_path import local_path
from balog.common.storage.local_files import is_at
from balog.log.outputs.base import LogOutput


class FileOutput(LogOutput):
    """JSON lines appended to a file that any number of threads and processes share.

    Each event is one write. If another process moved the file, as logrotate does, the next event opens a new one.

    Args:
        path: the file; its folder is created if necessary.
    """

    _descriptor: int | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(local_path(os.fspath(path), "file"))
        self._lock = threading.RLock()
        self._is_torn = False
        _outputs.add(self)

    def write(self, level: str, event: bytes) -> None:
        """Append one line."""
        line = event + b"\n"
        with self._lock:
            descriptor = self._open_current()
            if self._is_torn:  # a full disk took a part of a line; the next one begins on a new line
                line = b"\n" + line
            written = os.write(descriptor, line)
            if written < len(line):
                self._is_torn = True
                while written < len(line):
                    written += os.write(descriptor, line[written:])
            self._is_torn = False

    def close(self, deadline: float) -> int:
        """Close the file."""
        with self._lock:
            self._close()
        return 0

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _open_current(self) -> int:
        """Return the descriptor of the file at the path."""
        descriptor = self._descriptor
        if descriptor is not None and not is_at(self.path, descriptor):
            self._close()
            descriptor = None
        if descriptor is None:
            descriptor = self._descriptor = self._open()
        return descriptor

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            descriptor = os.open(self.path, flags, 0o644)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            descriptor = os.open(self.path, flags, 0o644)
        self._is_torn = _ends_in_partial_line(descriptor, self.path)
        return descriptor

    def _reopen(self) -> None:
        """Open the file again in a forked child, because a lock on the inherited file would be the parent's, too."""
        self._lock = threading.RLock()
        self._close()


_outputs: weakref.WeakSet[FileOutput] = weakref.WeakSet()


def _after_fork() -> None:
    for output in list(_outputs):
        output._reopen()


os.register_at_fork(after_in_child=_after_fork)


def _ends_in_partial_line(descriptor: int, path: str) -> bool:
    """Return whether the last line is incomplete, because an earlier writer was interrupted."""
    state = os.fstat(descriptor)
    if not state.st_size or not stat.S_ISREG(state.st_mode):
        return False
    try:
        with open(path, "rb") as file:
            file.seek(state.st_size - 1)
            return file.read(1) not in (b"\n", b"")
    except OSError:  # the file is writable and not readable
        return False
