"""The bytes of a config file, of a bounded size."""

from __future__ import annotations

import os
import stat

from balog.common.errors import ConfigError

MAX_CONFIG_BYTES = 4 * 1024 * 1024

_pipes: dict[tuple[int, int], bytes] = {}
"""The content of each pipe, such as that of ``--config <(command)``, which can be read only once."""


def read_bytes(path: str | os.PathLike[str], max_bytes: int = MAX_CONFIG_BYTES) -> bytes:
    """Return the content of a file, or of a pipe, which may be read again.

    Raises:
        ConfigError: the file cannot be read, or is larger than ``max_bytes``.
    """
    try:
        with open(path, "rb") as file:
            info = os.fstat(file.fileno())
            pipe = (info.st_dev, info.st_ino) if stat.S_ISFIFO(info.st_mode) else None
            known = _pipes.get(pipe) if pipe is not None else None
            data = file.read(max_bytes + 1) if known is None else known
            if pipe is not None:
                _pipes[pipe] = data
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", str(path)) from None
    except ValueError as error:  # a path with a null character
        raise ConfigError(f"cannot be read: {error}", repr(str(path))) from None
    if len(data) > max_bytes:
        raise ConfigError(f"larger than {max_bytes} bytes; is this the right file?", str(path))
    return data


def place(source: str, line: int, column: int) -> str:
    """Return the source of an error: a file with a line and a column, both from 1."""
    return f"{source}:{line}:{column}"


def place_after(source: str, before: bytes) -> str:
    """Return the source of an error in what follows some bytes of a file."""
    text = before.decode("utf-8", "replace")
    return place(source, text.count("\n") + 1, len(text) - text.rfind("\n"))


def decode_text(data: bytes, source: str) -> str:
    """Return the text of a file without a byte order mark.

    Raises:
        ConfigError: it is not UTF-8 (with line and column).
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8: {error.reason}", place_after(source, data[: error.start])) from None
