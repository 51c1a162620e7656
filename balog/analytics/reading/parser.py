"""DuckDB as the parser for blocks of lines, and the JSON numbers that its doubles can't represent exactly.

DuckDB rewrites the fractions of a payload as doubles, which changes the text of such payloads. The search for them is
fast when there are none.
"""

from __future__ import annotations

import atexit
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa

from balog.analytics.closed_duckdb import open_closed
from balog.analytics.reading.blocks import new_buffer
from balog.analytics.reading.validation import LONGEST_LINE

DOUBLE_DIGITS = 17
"""Decimal digits that identify any double. A number with more digits was not a double."""

_NUMBER = re.compile(rb"([0-9]+)(?:\.([0-9]+)|(?=[eE]))")
_EXPONENT = re.compile(rb"[eE][-+]?[0-9]{3}")
_BEFORE = b":,[ \t\r\n"
_LONGEST = 60  # bytes before an exponent to look at


def inexact_lines(text: bytes) -> list[int]:
    """Return the indices of the JSON lines that may have a number that a double would round."""
    chars = np.frombuffer(text, np.uint8)
    positions = sorted([*_fractions(text, chars), *_exponents(text, chars)])
    if not positions:
        return []
    lines = np.searchsorted(np.flatnonzero(chars == ord("\n")), positions)
    return sorted(set(lines.tolist()))


def _fractions(text: bytes, chars: np.ndarray[Any, Any]) -> Iterator[int]:
    """Yield the positions of numbers with a point or an exponent and more than ``DOUBLE_DIGITS`` digits."""
    runs = chars - ord(".") < 12  # the point and the digits; the slash between them is in no number
    length = 1
    while length <= DOUBLE_DIGITS:  # runs[i] says whether so many bytes from i on are of a number
        step = min(length, DOUBLE_DIGITS + 1 - length)
        runs = runs[:-step] & runs[step:]
        length += step
    starts = np.flatnonzero(runs)
    for start in starts[np.diff(starts, prepend=-2) > 1].tolist():
        number = _NUMBER.match(text, start)
        if number and len(b"".join(number.groups(b"")).strip(b"0")) > DOUBLE_DIGITS:
            yield start


def _exponents(text: bytes, chars: np.ndarray[Any, Any]) -> Iterator[int]:
    """Yield the positions of exponents of three or more digits."""
    digits = chars - ord("0") < 10
    might_be = ((chars | 32) == ord("e"))[1:-3] & digits[:-4] & digits[3:-1]
    for position in (np.flatnonzero(might_be) + 1).tolist():
        if _EXPONENT.match(text, position):
            head = text[max(position - _LONGEST, 0) : position].rstrip(b"0123456789.-")
            if not head or head[-1] in _BEFORE:  # otherwise it is inside a string, as the digits of an id are
                yield position


class _Event(msgspec.Struct):
    payload: msgspec.Raw


_decode = msgspec.json.Decoder(_Event).decode


def exact_payloads(lines: bytes, inexact: Sequence[int], count: int) -> dict[int, str]:
    """Return the original payloads of the lines with such numbers, by row.

    Args:
        lines: lines of events.
        inexact: the result of ``inexact_lines``.
        count: the number of rows that were read; the result is empty if that is not one for each line.
    """
    split = lines.split(b"\n")
    rows = {number: row for row, number in enumerate(number for number, line in enumerate(split) if line.strip())}
    if len(rows) != count:
        return {}
    payloads = ((rows[number], bytes(_decode(split[number]).payload)) for number in inexact)
    # Numbers outside of the payload do not count: its text must not depend on unread fields.
    return {row: str(payload, "utf-8") for row, payload in payloads if inexact_lines(payload)}


class Parser:
    """A DuckDB connection and the in-memory file that it parses.

    Attributes:
        buffer: for ``read_blocks``; the parser keeps it, because both are expensive to create.
        data: the current lines.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("balog")
            self._path = f"/proc/self/fd/{self._file}"
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="balog-")
            self._path = os.path.join(self._folder.name, "block.jsonl")
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        self._connection = open_closed([self._path], threads=1)
        self.buffer = new_buffer()
        self.data = memoryview(b"")
        self._longest = 0
        self._lenient = False

    def close(self) -> None:
        """Release memory and files."""
        self._connection.close()
        os.close(self._file)
        if self._folder is not None:
            self._folder.cleanup()

    def take(self, data: bytes | memoryview, lenient: bool) -> None:
        """Set the lines to parse.

        Args:
            data: whole lines.
            lenient: return null for a value of another type, and a row of nulls for an invalid line. Otherwise both
                raise an error. Only a strict parser rejects duplicate keys.
        """
        written, data = 0, memoryview(data)
        while written < len(data):
            written += os.pwrite(self._file, data[written:], written)
        os.ftruncate(self._file, len(data))
        self.data = data
        self._longest = LONGEST_LINE if not lenient else max(LONGEST_LINE, max(map(len, bytes(data).split(b"\n"))) + 1)
        self._lenient = lenient

    def table(self, columns: str, select: str, rest: str = "") -> pa.Table:
        """Query the lines.

        Parsing a line costs about 0.5 µs. Each selected text costs another 0.02 to 0.05 µs, a time 0.1 µs, a regular
        expression 0.2 µs or more.

        Args:
            columns: as in DuckDB's ``read_json``.
            select: the expressions after SELECT.
            rest: the SQL after FROM.
        """
        # Without records=true, DuckDB samples each block for 0.2 s when only one column is selected.
        lines = (
            f"read_json('{self._path}', format='newline_delimited', compression='uncompressed', records=true, "
            f"columns={columns}, ignore_errors={self._lenient}, maximum_object_size={self._longest})"
        )
        return self._connection.sql(f"SELECT {select} FROM {lines} {rest}").to_arrow_table()  # noqa: S608

    def ask(self, sql: str, given: pa.Table) -> pa.Table:
        """Query a table, whose name in the SQL is ``given``."""
        self._connection.register("given", given)
        try:
            return self._connection.sql(sql).to_arrow_table()
        finally:
            self._connection.unregister("given")


_idle: dict[int, list[Parser]] = {}  # by process, because a fork must not use its parent's parsers


@contextmanager
def borrow_parser() -> Iterator[Parser]:
    """Borrow a parser for exclusive use. Spark reuses its worker processes, and they reuse their parsers."""
    idle = _idle.setdefault(os.getpid(), [])
    try:
        parser = idle.pop()
    except IndexError:
        parser = Parser()
        atexit.register(parser.close)
    is_sound = True
    try:
        yield parser
    except duckdb.Error:  # a failed connection answers no more queries
        is_sound = False
        atexit.unregister(parser.close)
        parser.close()
        raise
    finally:
        if is_sound:
            idle.append(parser)
