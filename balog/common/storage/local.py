"""Storage on local disk: a new file is written, synced and renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, BinaryIO

from balog.common.storage.base import MAX_BYTES, StorageError
from balog.common.storage.local_files import create_file, replacing


class LocalStorage:
    """See ``Storage``."""

    def __init__(self, root: str) -> None:
        self.url = root
        self._root = Path(root)

    def read(self, name: str = "", limit: int = MAX_BYTES) -> bytes | None:
        """See ``Storage``."""
        with self._errors_at(name) as path:
            try:
                with open(path, "rb") as file:
                    data = file.read(limit + 1)
            except FileNotFoundError:
                return None
        if len(data) > limit:
            raise StorageError(f"{path}: more than {limit} bytes; is this the right file?", retryable=False)
        return data

    def open(self, name: str = "") -> BinaryIO:
        """See ``Storage``."""
        with self._errors_at(name) as path:
            return open(path, "rb")

    def write(self, data: bytes, name: str = "") -> None:
        """See ``Storage``."""
        with self._replacing(name) as file:
            file.write(data)

    def create(self, data: bytes, name: str) -> bool:
        """See ``Storage``."""
        with self._errors_at(name) as path:
            path.parent.mkdir(parents=True, exist_ok=True)
            return create_file(path, data)

    def upload(self, file: Path, name: str = "") -> None:
        """See ``Storage``."""
        with open(file, "rb") as source, self._replacing(name) as target:
            shutil.copyfileobj(source, target, 1 << 20)

    def size(self, name: str = "") -> int | None:
        """See ``Storage``."""
        with self._errors_at(name) as path:
            try:
                return path.stat().st_size
            except FileNotFoundError:
                return None

    def modified(self, name: str = "") -> datetime | None:
        """See ``Storage``."""
        with self._errors_at(name) as path:
            return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)

    def files(self, enter: Callable[[str], bool] = lambda name: True) -> Iterator[tuple[str, int]]:
        """See ``Storage``."""
        with self._errors_at("") as root:
            if not root.is_dir():
                yield "", root.stat().st_size
                return
        yield from self._files("", enter)

    def _files(self, folder: str, enter: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
        with self._errors_at(folder) as path:
            entries: list[tuple[str, int | None]] = []
            for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
                if not entry.name.startswith((".", "_")) and (entry.is_file() or _is_below(entry, path)):
                    with suppress(FileNotFoundError):  # removed meanwhile
                        size = entry.stat().st_size if entry.is_file() else None
                        entries.append((f"{folder}/{entry.name}".lstrip("/"), size))
        for name, size in entries:
            if size is not None:
                yield name, size
            elif enter(name):
                yield from self._files(name, enter)

    def remove(self, name: str = "") -> None:
        """See ``Storage``."""
        with self._errors_at(name) as path:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Do nothing: no file is open."""

    @contextmanager
    def _replacing(self, name: str) -> Iterator[IO[bytes]]:
        with self._errors_at(name) as path:
            if path.is_dir():
                raise StorageError(f"{path}: is a folder, expected a file", retryable=False)
            # The target of a link is replaced, not the link: users link state files.
            target = path.resolve()
            if target.exists() and not target.is_file():  # a device or a FIFO is written to, not replaced
                with open(target, "wb") as device:
                    yield device
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as file:
                yield file

    @contextmanager
    def _errors_at(self, name: str) -> Iterator[Path]:
        path = self._root / name if name else self._root
        try:
            yield path
        except OSError as error:
            raise StorageError(f"{error.filename or path}: {error.strerror or error}") from error
        except ValueError as error:  # a path with a null character
            raise StorageError(f"{str(path)!r}: {error}", retryable=False) from error


def _is_below(entry: os.DirEntry[str], folder: Path) -> bool:
    """Return whether an entry is a folder, and not a link to its own folder or one above it."""
    if not entry.is_dir() or not entry.is_symlink():
        return entry.is_dir()
    target = Path(entry.path).resolve()
    return target != folder.resolve() and target not in folder.resolve().parents
