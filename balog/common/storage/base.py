"""The interface of every storage: a folder or file that is read and written whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, Protocol

from msgspec import Meta

from balog.common.errors import BalogError

MAX_BYTES = 64 << 20
"""Bytes that ``Storage.read`` reads at most."""

Options = Annotated[
    dict[str, str | int | float | bool | dict[str, Any]],
    Meta(
        description=(
            "What fsspec's file system takes: endpoint_url, host, username … A key, token or password is "
            '{"env": "NAME"} or {"file": "PATH"}.'
        ),
        examples=[{"endpoint_url": "http://localhost:9000"}],
    ),
]


class StorageError(BalogError):
    """A storage could not be read or written.

    Args:
        reason: the URL or path and the cause, as a clause without secrets.
        retryable: whether the same call may succeed later; errors of the other side are retryable.
    """

    def __init__(self, reason: str, *, retryable: bool = True) -> None:
        super().__init__(reason)
        self.retryable = retryable


class Entry(NamedTuple):
    """A file in a listing: its name, size in bytes, and time of writing (seconds since the epoch; 0.0 if unknown)."""

    name: str
    size: int
    modified: float


class Storage(Protocol):
    """A folder or a file at a URL; used by one thread at a time. Names are relative, with ``/``; "" is the URL itself.

    Every method raises ``StorageError`` when the storage can't be reached or refuses; the next call connects again.

    Attributes:
        url: the URL or path, for messages.
    """

    url: str

    def read(self, name: str = "", limit: int = MAX_BYTES) -> bytes | None:
        """Return a file's content; None if there is no such file. More than ``limit`` bytes are an error."""

    def open(self, name: str = "") -> BinaryIO:
        """Open a file for reading; the stream's methods also raise ``StorageError``."""

    def write(self, data: bytes, name: str = "") -> None:
        """Write or replace a file; it is durable when this returns."""

    def create(self, data: bytes, name: str) -> bool:
        """Write a new file whole. Return False, and change nothing, if the file exists.

        Of several writers that create one name at the same time, exactly one gets True. After an error the file may
        exist, and after a repeated request the winner may get False: to find out, write different bytes each time.

        Raises:
            StorageError: also, not retryable, if the storage cannot do this. Local disk and memory can, and S3 and
                compatible stores that honor If-None-Match, which is tested first.
        """

    def upload(self, file: Path, name: str = "") -> None:
        """Copy a local file there, with a few MiB in memory at most; see ``write``."""

    def size(self, name: str = "") -> int | None:
        """Return a file's size in bytes; None if there is no such file."""

    def modified(self, name: str = "") -> datetime | None:
        """Return the time in UTC when a file was written; None if the storage does not report it."""

    def files(self, enter: Callable[[str], bool] = ...) -> Iterator[tuple[str, int]]:
        """Yield the files below with their sizes in bytes, sorted folder by folder; just ("", size) if this is a file.

        Names that begin with ``.`` or ``_`` are skipped: they are hidden, or still being written.

        Args:
            enter: returns whether to list a folder, given its name relative to this storage.
        """

    def remove(self, name: str = "") -> None:
        """Remove a file if it exists."""

    def close(self) -> None:
        """Close the connection, if there is one."""
