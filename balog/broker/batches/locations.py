"""Open the files that a BATCH names: on local disk, or in a store by fsspec."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import IO
from urllib.parse import unquote, urlsplit

from balog.broker.batches.config import BatchConfig
from balog.common.errors import ConfigError
from balog.common.storage import StorageError, open_storage
from balog.singer.batch.dialects import BatchError


class Places:
    """The locations that a config allows.

    A path is taken relative to ``root`` unless it begins with a slash, may not have ``..`` in it, and counts for what
    it is when links are followed.
    """

    def __init__(self, config: BatchConfig) -> None:
        self._config = config
        self._root = os.path.realpath(config.root)
        self._folders = [os.path.realpath(local_path(folder)) for folder in config.allowed if is_local(folder)]
        self._urls = [url for url in config.allowed if not is_local(url)]
        for url in self._urls:
            if not urlsplit(url).netloc:
                raise ConfigError(f"{url} is neither a folder nor a URL with a host or bucket", path="$.batch.allowed")

    @contextmanager
    def open(self, file: str) -> Iterator[IO[bytes]]:
        """Open one file of a manifest for reading.

        Raises:
            BatchError: it is not there, can't be read, or must not be; as a clause that goes on after the file's name.
        """
        try:
            opened = self._open_local(file) if is_local(file) else self._open_url(file)
            with closing(opened):
                yield opened
        except StorageError as error:
            raise BatchError(f"can't be read: {error}") from None
        except OSError as error:
            raise BatchError(f"can't be read: {error.strerror or error}") from None

    def _open_local(self, file: str) -> IO[bytes]:
        path = local_path(file)
        if ".." in path.split("/"):
            raise BatchError("has .. in its path, which leads anywhere; the tap must name the file itself")
        if "\0" in path:
            raise BatchError("has a null character in its path")
        is_relative = not path.startswith("/")
        real = os.path.realpath(os.path.join(self._root, path))
        if is_relative and not _is_below(real, self._root):
            raise BatchError("leads out of the folder batch.root by a link")
        if not any(_is_below(real, folder) for folder in self._folders):
            raise BatchError("lies where no file of a BATCH may; add its folder to batch.allowed if that is right")
        descriptor = os.open(
            real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )  # opening a FIFO must not block the stream
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise BatchError("is no regular file")
        return os.fdopen(descriptor, "rb")

    def _open_url(self, file: str) -> IO[bytes]:
        if not any(_begins_with(file, url) for url in self._urls):
            raise BatchError("lies where no file of a BATCH may; add the beginning of its URL to batch.allowed")
        if urlsplit(file).scheme.lower() in ("http", "https"):
            raise BatchError("is at an HTTP server; a broker reads files on disk and in stores such as s3://")
        try:
            return open_storage(file, self._config.options).open()
        except ConfigError as error:
            raise BatchError(f"can't be read: {error.path} {error.reason}") from None


def is_local(file: str) -> bool:
    """Return whether a location is on local disk."""
    return "://" not in file or file.lower().startswith("file://")


def local_path(file: str) -> str:
    """Return the path of a local location; ``file://folder/name``, as in the SDK's docs, is relative."""
    if "://" not in file:
        return file
    rest = file[len("file://") :]
    host, slash, path = rest.partition("/")
    return unquote(slash + path if host in ("", "localhost") else rest)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _begins_with(file: str, url: str) -> bool:
    """Return whether a URL is below another one: same scheme and host, and whole path segments."""
    try:
        parts, other = urlsplit(file), urlsplit(url)
        same = (parts.scheme.lower(), parts.hostname, parts.port) == (other.scheme.lower(), other.hostname, other.port)
    except ValueError:
        return False
    path = unquote(parts.path)
    if ".." in path.split("/") or "\\" in path:
        return False
    return same and _is_below(path, unquote(other.path).rstrip("/") or "/")
