"""Opens files by path or URL, on the driver and in workers: ranges, retries, bounded memory."""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from balog.common.backoff import Backoff
from balog.common.errors import ConfigError
from balog.common.storage import StorageError, open_storage
from balog.common.storage.remote import RemoteStorage

T = TypeVar("T")

TRIES = 6
BACKOFF = Backoff(1.0, 16.0)
"""Delays between tries; the file system's own quick tries come on top."""

_FIRST_RANGE = 64 << 10  # enough to find a newline
_LARGEST_RANGE = 8 << 20
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
_SECRET = re.compile(r"secret|passw|token|credential|(access|private|account|api)[._-]?key|\Akey\Z", re.IGNORECASE)


def is_remote(path: str) -> bool:
    """Return whether a path is the URL of a store, and not a local path or a ``file:`` URL."""
    return bool(_URL.match(path)) and not path.startswith("file:")


def local_path(path: str) -> str:
    """Return the path of a ``file:`` URL; other paths are unchanged."""
    return unquote(urlsplit(path).path) if path.startswith("file:") else path


def is_secret(option: str) -> bool:
    """Return whether an option's name is that of a secret."""
    return bool(_SECRET.search(option)) and option.lower() != "storage_options"


def store_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options for opening a store (``balog.common.storage.Options``) from the data source's options.

    They are ``endpoint_url`` of S3, and ``storage_options``: the options of any file system of fsspec as a JSON object,
    in which a secret is ``{"env": "NAME"}``.

    Raises:
        ConfigError: a value is invalid, or a secret, which Spark would show in plans and logs.
    """
    where = "format('balog')"
    for name in options:
        if is_secret(name):
            raise ConfigError(
                f"option {name} would show a secret in plans and logs; leave it out and set AWS_ACCESS_KEY_ID and "
                'AWS_SECRET_ACCESS_KEY, or give storage_options with {"env": "NAME"}',
                where,
            )
    settings: dict[str, Any] = {}
    if text := options.get("storage_options"):
        try:
            settings = json.loads(text)
        except ValueError:
            settings = None  # type: ignore[assignment]
        if not isinstance(settings, dict):
            raise ConfigError(
                'option storage_options is not a JSON object; expected {"endpoint_url": "https://…"}', where
            )
    if endpoint := options.get("endpoint_url"):
        settings["endpoint_url"] = endpoint
    if not re.fullmatch(r"https?://[^/@?#]+/?", str(settings.get("endpoint_url", "http://none"))):
        raise ConfigError("option endpoint_url is not an address; expected http(s)://HOST:PORT", where)
    return settings


class StoragePool:
    """Opens files by path or URL. Spark sends it to its workers, and each process has its own connections.

    Args:
        options: how to open stores, see ``store_options``; it names secrets, but does not contain them.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = dict(options or {})

    def open(self, path: str) -> io.BufferedReader:
        """Open a file for reading and seeking; a store gets the first request at the first read.

        Raises:
            OSError: the local file does not exist or can't be read. The methods of a store's file also raise it, after
                several tries.
        """
        if not is_remote(path):
            return open(local_path(path), "rb")
        storage, name = self.store(path)
        return io.BufferedReader(_Ranges(storage, name), _FIRST_RANGE)

    def store(self, url: str) -> tuple[RemoteStorage, str]:
        """Return this process's connection to the bucket or host of a URL, and the name in it.

        Raises:
            ConfigError: the URL can't be opened.
            MissingExtraError: the packages for this kind of URL are not installed.
        """
        match = _URL.match(url)
        root = match[0] if match else url
        key = os.getpid(), root, json.dumps(self.options, sort_keys=True)
        if key not in _stores:
            storage = open_storage(root, self.options, "path")
            if not isinstance(storage, RemoteStorage):
                raise ConfigError("is not a URL of a store", path=root)
            _stores[key] = storage
        return _stores[key], url[len(root) :].strip("/")


_stores: dict[tuple[int, str, str], RemoteStorage] = {}
_failing_stores: set[int] = set()
"""Stores (by id) whose last request failed after all tries; the next requests get one try."""


class _Ranges(io.RawIOBase):
    """A file of a store, read in ranges that grow while it is read sequentially."""

    def __init__(self, storage: RemoteStorage, name: str) -> None:
        self._storage, self._name = storage, name
        self._position = 0
        self._range = b""
        self._begins = 0
        self._next = _FIRST_RANGE
        self._end: int | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("from the end")
        self._position = offset + (self._position if whence == io.SEEK_CUR else 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        at = self._position - self._begins
        if not 0 <= at < len(self._range):
            if self._end is not None and self._position >= self._end:
                return 0
            self._fetch()
            at = 0
        piece = memoryview(self._range)[at : at + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _fetch(self) -> None:
        goes_on = self._position == self._begins + len(self._range)
        size = self._next if goes_on else _FIRST_RANGE
        self._range = b""  # frees the old range before the new one is read
        self._begins = self._position
        self._range = self._try(self._position, self._position + size)
        if len(self._range) < size:
            self._end = self._position + len(self._range)
        self._next = min(size * 8, _LARGEST_RANGE)

    def _try(self, start: int, end: int) -> bytes:
        storage, name = self._storage, self._name
        try:
            return with_retries(storage, lambda: storage.read_range(start, end, name))
        except StorageError as error:
            raise OSError(str(error).removeprefix(f"{storage.url}/{name}: ")) from None


def with_retries(storage: RemoteStorage, ask: Callable[[], T]) -> T:
    """Ask a store, with up to ``TRIES`` tries for errors that can be retried.

    After a request has failed in all tries, the store gets one try until it answers again. Otherwise each file of a
    store that is down would take a quarter of a minute.

    Raises:
        StorageError: of the last try.
    """
    tries = 1 if id(storage) in _failing_stores else TRIES
    for number in range(1, tries + 1):
        try:
            answer = ask()
        except StorageError as error:
            if error.retryable and number < tries:
                time.sleep(BACKOFF.delay(number))
                continue
            if error.retryable:
                _failing_stores.add(id(storage))
            raise
        _failing_stores.discard(id(storage))
        return answer
    raise AssertionError("there is at least one try")
