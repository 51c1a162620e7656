"""Files that lie beside the code that names them."""

from __future__ import annotations

import os
import sys

from balog.tap.errors import TapError

__all__ = ["read_beside"]

_TOOLKIT = "balog.tap"
_MAX_BYTES = 4 * 1024 * 1024


def read_beside(path: str | os.PathLike[str]) -> tuple[bytes, str]:
    """Read a file that a tap's code names: relative to the file of that code, also in a zip, or absolute.

    Returns:
        Its bytes, and its path as it is shown.

    Raises:
        TapError: it cannot be read, or has more than 4 MiB.
    """
    name, loader = os.fspath(path), None
    if not os.path.isabs(name):
        frame = sys._getframe(1)
        while frame.f_back and (frame.f_globals.get("__name__") or "").startswith(_TOOLKIT):
            frame = frame.f_back
        declaring = frame.f_globals.get("__file__")
        loader = frame.f_globals.get("__loader__")
        if declaring:
            name = os.path.join(os.path.dirname(os.path.abspath(declaring)), name)
    try:
        if loader is not None and not os.path.exists(name) and hasattr(loader, "get_data"):
            data: bytes = loader.get_data(name)
        else:
            with open(name, "rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise TapError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MAX_BYTES:
        raise TapError(f"{name}: larger than {_MAX_BYTES} bytes; is this the right file?")
    return data, name
