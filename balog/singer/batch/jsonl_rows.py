"""Read and write JSON Lines: one row a line, unchanged."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from typing import IO

from balog.singer.batch.dialects import BatchError
from balog.singer.batch.rows import is_object, split_lines


def read_jsonl(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Return the rows of a file, without empty lines and a byte order mark.

    Raises:
        BatchError: a line is not a JSON object, or too long; with its number.
    """
    for number, line in enumerate(split_lines(blocks), 1):
        row = (line.removeprefix(BOM_UTF8) if number == 1 else line).strip()
        if not row:
            continue
        if not is_object(row):
            raise BatchError(f"line {number} is not a JSON object")
        yield row


class JsonlWriter:
    """See ``RowWriter``."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.count = 0
        self.size = 0

    def write(self, row: bytes) -> None:
        """See ``RowWriter``."""
        self._file.write(row + b"\n")
        self.count += 1
        self.size += len(row) + 1

    def finish(self) -> None:
        """See ``RowWriter``."""
