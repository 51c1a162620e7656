"""Write pages to files, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from balog.common.errors import ConfigError
from balog.common.storage.local_files import replace_file


def check_page_path(path: Path) -> None:
    """Check before the work that a page can be written.

    Raises:
        ConfigError: its folder does not exist.
    """
    if not path.absolute().parent.is_dir():
        raise ConfigError("its folder does not exist; make it, or give another --html", str(path))


def write_page(path: Path, page: str) -> None:
    """Write a page atomically.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        replace_file(path, page.encode())
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}; give another --html", str(path)) from None
