"""What every storage is: a place below which files are read and written whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, Protocol

from msgspec import Meta

from balog.errors import BalogError

__all__ = ["MAX_BYTES", "Entry", "Options", "Storage", "StorageError"]

MAX_BYTES = 64 << 20
"""What ``Storage.read`` takes into memory at most."""

Options = Annotated[
    dict[str, str | int | float | bool | dict[str, Any]],
    Meta(
        description=(
            "What fsspec's file system takes: endpoint_url, host, username … A key, token or password is "
            '{"env": "NAME"} or {"file": "PATH"}.'
        )
    ),
]


class StorageError(BalogError):
    """A place could not be read or written.

    Args:
        reason: where and what, as a clause; never with a secret in it.
        retryable: whether the same may work later. What is wrong with the other side is retryable.
    """

    def __init__(self, reason: str, *, retryable: bool = True) -> None:
        super().__init__(reason)
        self.retryable = retryable


class Entry(NamedTuple):
    """A file in a listing: its name, bytes, and when it was written (seconds since the epoch; 0.0 if nobody knows)."""

    name: str
    size: int
    modified: float


class Storage(Protocol):
    """A folder or a file at a URL; used by one thread at a time. Names are relative, with ``/``; "" is the URL itself.

    Every method raises ``StorageError`` when the place can't be reached or refuses; the next call connects again.

    Attributes:
        url: where it is, for people.
    """

    url: str

    def read(self, name: str = "", limit: int = MAX_BYTES) -> bytes | None:
        """Give a file's bytes; None when there is none. More than ``limit`` bytes are an error."""

    def open(self, name: str = "") -> BinaryIO:
        """Open a file to read it as a stream, whose methods raise ``StorageError`` too."""

    def write(self, data: bytes, name: str = "") -> None:
        """Put a file there, in the place of one that is there already; when it returns, the file is safe."""

    def create(self, data: bytes, name: str) -> bool:
        """Put a file there, whole, unless there is one already; then False, and what is there stays.

        Of all who create one name at once, exactly one is told True. After an error nobody knows whether it is there,
        and where the network asked twice the winner may be told False: who must know gives each file bytes of its own.

        Raises:
            StorageError: also, not retryable, where a place can't do this. Local disk, S3 (and what speaks it, if it
                keeps If-None-Match, which is tried out first) and memory can.
        """

    def upload(self, file: Path, name: str = "") -> None:
        """Put a copy of a local file there; see ``write``. Never more than some MiB of it are in memory."""

    def size(self, name: str = "") -> int | None:
        """Give a file's bytes; None when there is none."""

    def modified(self, name: str = "") -> datetime | None:
        """Give the time, in UTC, at which a file was written; None when the place doesn't tell."""

    def files(self, enter: Callable[[str], bool] = ...) -> Iterator[tuple[str, int]]:
        """Give the files below, sorted folder by folder, each with its bytes; just ("", bytes) when this is a file.

        Names that begin with ``.`` or ``_`` are left out: they are hidden, or still being written.

        Args:
            enter: tells of a folder, by its name relative to this place, whether to look into it.
        """

    def remove(self, name: str = "") -> None:
        """Remove a file; one that is not there is no error."""

    def close(self) -> None:
        """Close the connection, if there is one."""
