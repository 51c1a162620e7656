"""Write a new file of rows to a location on disk or in a store."""

from __future__ import annotations

import os
import re
import tempfile
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

from balog.broker.batches.config import BatchConfig
from balog.broker.batches.locations import is_local, local_path
from balog.common import local_path as paths
from balog.common.backoff import Backoff
from balog.common.errors import ConfigError
from balog.common.storage import Storage, StorageError, open_storage
from balog.common.storage.local_files import create_locked, lock, sync, sync_folder
from balog.event import new_id
from balog.singer.batch.files import suffix
from balog.singer.batch.rows import RowWriter

_TRIES = 3
_BACKOFF = Backoff(2.0, 8.0)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


class Location:
    """The location of new files, each published atomically; a store receives them from a temporary file.

    Raises:
        ConfigError: it is no place that can be written to.
    """

    def __init__(self, config: BatchConfig) -> None:
        location = config.location or ""
        self._folder: Path | None = None
        self._storage: Storage | None = None
        self._url = location.rstrip("/")
        self._is_tidy = False
        try:
            if is_local(location):
                self._folder = Path(os.path.abspath(paths.local_path(local_path(location), "location")))
                if config.options:
                    raise ConfigError("are for a URL such as s3://…, a path on local disk takes none", path="options")
            else:
                self._storage = open_storage(location, config.options, "location")
        except ConfigError as error:
            raise ConfigError(error.reason, error.source, f"$.batch.{error.path}") from None

    def begin(self, stream: str, format: str, compression: str, make: Callable[[IO[bytes]], RowWriter]) -> NewFile:
        """Begin a file with the stream's name in its own.

        Raises:
            OSError: there is no room for it.
            MissingExtraError: a package for its format or compression is not installed.
        """
        name = (_UNFIT.sub("_", stream).strip("._-")[:80] or "stream") + "-" + new_id() + suffix(format, compression)
        if self._folder is None:
            descriptor, path = tempfile.mkstemp(prefix="balog-", suffix=".part")
            file: IO[bytes] = os.fdopen(descriptor, "wb")
        else:
            if not self._is_tidy:
                self._folder.mkdir(parents=True, exist_ok=True)
                _remove_orphans(self._folder)
                self._is_tidy = True
            path = str(self._folder / f".{name}.part")
            file = open(create_locked(Path(path)), "wb")  # noqa: SIM115
        try:
            return NewFile(self, file, Path(path), name, make(file))
        except BaseException:
            file.close()
            os.unlink(path)
            raise

    def publish(self, path: Path, name: str) -> str:
        """Move a finished file to its location, and return its URL, or its path on disk.

        Raises:
            OSError: it could not be put there.
            StorageError: it could not be put there, also not later.
        """
        if self._folder is not None:
            final = self._folder / name
            os.rename(path, final)
            sync_folder(self._folder)
            return str(final)
        for number in range(1, _TRIES + 1):
            try:
                if self._storage is not None:
                    self._storage.upload(path, name)
                break
            except StorageError as error:
                if not error.retryable or number == _TRIES:
                    raise
                time.sleep(_BACKOFF.delay(number))
        path.unlink()
        return f"{self._url}/{quote(name)}"

    def remove(self, url: str) -> None:
        """Remove a published file; a missing file is not an error.

        Raises:
            OSError, StorageError: it is still there.
        """
        if self._folder is not None:
            with suppress(FileNotFoundError):
                os.unlink(url)
        elif self._storage is not None:
            self._storage.remove(url.rpartition("/")[2])


class NewFile:
    """An unfinished file; hidden, or in the folder for temporary files, until it is finished."""

    def __init__(self, location: Location, file: IO[bytes], path: Path, name: str, writer: RowWriter) -> None:
        self._location = location
        self._file = file
        self._path = path
        self._name = name
        self._away = weakref.finalize(self, _remove, file, path)  # also when the stream ends early
        self.writer = writer
        self.begun = time.monotonic()

    def finish(self) -> str:
        """Close the file, make it durable (fsync) and publish it; return its URL or path.

        Raises:
            OSError, StorageError: it is not there; the unfinished file is gone.
        """
        try:
            self.writer.finish()
            sync(self._file)
            self._file.close()
            url = self._location.publish(self._path, self._name)
        except BaseException:
            self._away()
            raise
        self._away.detach()
        return url

    def discard(self) -> None:
        """Remove the unfinished file."""
        with suppress(Exception):  # compression needs its end before the file is closed
            self.writer.finish()
        self._away()


def _remove(file: IO[bytes], path: Path) -> None:
    with suppress(OSError):
        file.close()
    with suppress(OSError):
        path.unlink()


def _remove_orphans(folder: Path) -> None:
    """Remove files that killed writers left: no message names them, and no STATE passed their rows."""
    for path in folder.glob(".*-LG*.part"):
        with suppress(OSError), open(path, "rb") as file:
            if lock(file, wait=False):  # a running writer has the lock
                path.unlink()
