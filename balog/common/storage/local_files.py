"""Operations on local files that survive a power cut or another process: atomic writes, fsync, locks."""

from __future__ import annotations

import fcntl
import os
import select
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_TOGETHER = 32  # folders to sync at a time


def sync(file: int | IO[bytes]) -> None:
    """Write an open file's bytes through to the disk (fsync).

    Args:
        file: a descriptor, or a file, which is flushed first.

    Raises:
        OSError: the disk did not take them.
    """
    if not isinstance(file, int):
        file.flush()
        file = file.fileno()
    os.fsync(file)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Write the names in a folder through to the disk, so that new and renamed files survive a power cut.

    Raises:
        OSError: the disk did not take them.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(folders: Iterable[str | os.PathLike[str]]) -> None:
    """Write the names in folders through to the disk, many at a time: a disk takes them together.

    Raises:
        OSError: the disk did not take them.
    """
    with ThreadPoolExecutor(_TOGETHER) as threads:
        for _ in threads.map(sync_folder, folders):
            pass


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder and its missing parents; their names are on disk when this returns."""
    if path.is_dir():
        return
    make_folder(path.parent, mode)
    path.mkdir(mode=mode, exist_ok=True)
    sync_folder(path.parent)


@contextmanager
def replacing(path: Path, mode: int = 0o666, *, syncs_folder: bool = True) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of ``path``, whole or not at all, when the block ends.

    The file is a hidden one in the same folder until then; when the block raises, it is removed.

    Args:
        mode: permissions of the new file, less the umask.
        syncs_folder: the new name is on disk when the block has ended, not only the bytes.

    Raises:
        OSError: the file could not be written; what was there before is unchanged.
    """
    part = _hidden(path)
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            yield file
            sync(file)
        os.rename(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    if syncs_folder:
        sync_folder(path.parent)


def replace_file(path: Path, data: bytes, mode: int = 0o666, *, syncs_folder: bool = True) -> None:
    """Write a file whole or not at all; see ``replacing``."""
    with replacing(path, mode, syncs_folder=syncs_folder) as file:
        file.write(data)


def write_all(file: int, data: bytes | memoryview) -> None:
    """Write every byte, even to a pipe that does not block.

    Raises:
        OSError: nobody reads any more, no space is left, …
    """
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(file, view) :]
        except BlockingIOError:
            select.select([], [file], [])


def create_file(path: Path, data: bytes, *, syncs_folder: bool = True) -> bool:
    """Write a new file whole or not at all. Return False, and change nothing, when it exists.

    Args:
        syncs_folder: as for ``replacing``.

    Raises:
        OSError: the file could not be written.
    """
    part = _hidden(path)
    try:
        with open(part, "xb") as file:
            file.write(data)
            sync(file)
        os.link(part, path)  # a rename would replace the file that is there
    except FileExistsError:
        return False
    finally:
        with suppress(OSError):
            part.unlink()
    if syncs_folder:
        sync_folder(path.parent)
    return True


def lock(file: int | IO[bytes], *, wait: bool = True, shared: bool = False) -> bool:
    """Lock an open file until it is closed or its process ends (flock).

    Args:
        wait: wait for the lock as long as another process has it.
        shared: other shared locks are allowed at the same time.

    Returns:
        Whether this process has the lock; always true after waiting.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError):  # EAGAIN; over NFS also EACCES
        return False
    return True


def unlock(file: int | IO[bytes]) -> None:
    """Release a lock before the file is closed."""
    fcntl.flock(file, fcntl.LOCK_UN)


def create_locked(path: Path, flags: int = os.O_WRONLY | os.O_EXCL, mode: int = 0o666) -> int:
    """Create a file that this process has locked, and return its descriptor.

    A process that cleans up abandoned files may lock and remove the new one first; then another one is created.

    Args:
        flags: as for ``os.open``; ``O_CREAT`` and ``O_CLOEXEC`` are added.
        mode: permissions, less the umask.

    Raises:
        OSError: the file could not be created.
    """
    while True:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, mode)
        try:
            lock(descriptor)
            if is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def is_at(path: str | os.PathLike[str], descriptor: int) -> bool:
    """Return whether an open file is still the one at a path: neither removed nor replaced."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name[:200]}.{os.urandom(4).hex()}.part")
