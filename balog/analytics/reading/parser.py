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

import duckdb
import msgspec
import pyarrow as pa

from balog.analytics.closed_duckdb import open_closed
from balog.analytics.reading.blocks import new_buffer
from balog.analytics.reading.validation import LONGEST_LINE

DOUBLE_DIGITS = 17
"""Decimal digits that identify any double. A number with more digits was not a double."""

_ALIKE = bytes.maketrans(b"0123456789E", b"0000000000e")
_POINT = ord(".")
_HALF = b"0" * 9  # of more than 17 digits, nine or more are on one side of the point
_DIGITS = re.compile(rb"0*")
_BEFORE = b":,[ \t\r\n"
_LONGEST = 60  # bytes before a point or an exponent to look at


def inexact_lines(text: bytes) -> list[int]:
    """Return the indices of the JSON lines that may have a number that a double would round."""
    alike = text.translate(_ALIKE)  # each digit becomes 0, so that a fast search finds long numbers
    positions = [*_fractions(text, alike), *_exponents(text, alike)]
    lines: set[int] = set()
    line = before = 0
    for position in sorted(positions):
        line += text.count(b"\n", before, position)
        lines.add(line)
        before = position
    return sorted(lines)


def _fractions(text: bytes, alike: bytes) -> Iterator[int]:
    """Yield the positions of the points of numbers with more than ``DOUBLE_DIGITS`` digits."""
    for needle, behind in ((b"." + _HALF, 0), (_HALF + b".", len(_HALF)), (_HALF + b"e", len(_HALF))):
        end = 0
        while (at := alike.find(needle, end)) >= 0:
            point = at + behind
            head = alike[max(point - _LONGEST, 0) : point]
            start = point - len(head) + len(head.rstrip(b"0"))
            end = _DIGITS.match(alike, point + 1).end()  # type: ignore[union-attr]  # it matches no digit, too
            digits = text[start : end if alike[point] == _POINT else point]
            if len(digits) > DOUBLE_DIGITS and len(digits.replace(b".", b"").strip(b"0")) > DOUBLE_DIGITS:
                yield point


def _exponents(text: bytes, alike: bytes) -> Iterator[int]:
    """Yield the positions of exponents of three or more digits."""
    for needle in (b"e000", b"e-000", b"e+000"):
        end = 0
        while (at := alike.find(needle, end)) >= 0:
            end = at + len(needle)
            head = text[max(at - _LONGEST, 0) : at].rstrip(b"0123456789.-")
            if not head or head[-1] in _BEFORE:  # otherwise it is inside a string, as the digits of an id are
                yield at


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
