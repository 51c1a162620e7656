"""The files of a source, and the slices that tasks read."""

from __future__ import annotations

from typing import NamedTuple


class SourceFile(NamedTuple):
    """A file of a source.

    Attributes:
        path: its path or URL.
        size: in bytes.
        modified: seconds since the epoch; 0.0 if unknown.
    """

    path: str
    size: int
    modified: float = 0.0


class Slice(NamedTuple):
    """Bytes ``start`` to ``end`` of a file; ``end`` None is the file's end. A compressed file is always whole."""

    path: str
    start: int = 0
    end: int | None = None
