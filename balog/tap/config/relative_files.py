"""Files whose paths are relative to the code that names them."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from types import FrameType

Reader = Callable[[str], bytes]
"""Returns the bytes of a file by its path; raises OSError."""

_TOOLKIT = ("balog.tap.", "balog_xml.")
_MAX_BYTES = 16 << 20  # the limit of XML; other formats allow less


def relative_to_caller(path: str | os.PathLike[str]) -> str:
    """Return the absolute path for a path relative to the file that called the toolkit."""
    given, file = os.fspath(path), _caller().f_globals.get("__file__")
    if os.path.isabs(given) or not isinstance(file, str):
        return given
    return os.path.join(os.path.dirname(os.path.abspath(file)), given)


def place_of_caller() -> str:
    """Return ``file:line`` of the code that called the toolkit."""
    frame = _caller()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _caller() -> FrameType:
    frame = sys._getframe(2)
    while frame.f_back and f"{frame.f_globals.get('__name__')}.".startswith(_TOOLKIT):
        frame = frame.f_back
    return frame


def read_file(path: str) -> bytes:
    """Read a file; of one that is too large, only one byte more than the limit."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe may never end
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    with open(path, "rb") as file:
        return file.read(_MAX_BYTES + 1)
