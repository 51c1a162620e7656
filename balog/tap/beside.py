"""Files that lie beside the code that names them."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable

__all__ = ["Reader", "beside", "read_file"]

Reader = Callable[[str], bytes]
"""Gives a file's bytes by its path; raises OSError."""

_TOOLKIT = "balog.tap"
_MOST_READ = 16 << 20  # XML may be so large; other readers allow less


def beside(path: str | os.PathLike[str]) -> tuple[Reader, str]:
    """Give a path as it is seen from the file of the code that called the toolkit, and what reads files there.

    In a zip, from which Python imports, that is the module's loader (PEP 302's ``get_data``).
    """
    said = os.fspath(path)
    frame = sys._getframe(1)
    while frame.f_back and f"{frame.f_globals.get('__name__')}.".startswith(f"{_TOOLKIT}."):
        frame = frame.f_back
    file = frame.f_globals.get("__file__")
    if os.path.isabs(said) or not isinstance(file, str):
        return read_file, said
    loader = frame.f_globals.get("__loader__")

    def read(path: str) -> bytes:
        try:
            return read_file(path)
        except NotADirectoryError:
            if loader is None or not hasattr(loader, "get_data"):
                raise
            data: bytes = loader.get_data(path)
            return data

    return read, os.path.join(os.path.dirname(os.path.abspath(file)), said)


def read_file(path: str) -> bytes:
    """Read a file, no more of it than tells that it is too large."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe has no end as long as somebody may write to it
        raise OSError(errno.EINVAL, "it is no regular file", path)
    with open(path, "rb") as file:
        return file.read(_MOST_READ + 1)
