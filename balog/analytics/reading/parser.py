"""DuckDB as the parser for blocks of lines."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb
import pyarrow as pa

from balog.analytics.reading.blocks import new_buffer
from balog.analytics.reading.validation import LONGEST_LINE


class Parser:
    """A DuckDB connection and the in-memory file that it parses.

    Attributes:
        buffer: for ``read_blocks``; the parser keeps it, because both are expensive to create.
        data: the current lines.
    """

    def __init__(self) -> None:
        self._connection = duckdb.connect(
            config={"threads": 1, "autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        with suppress(
            duckdb.Error
        ):  # the file changes under its name; older versions of DuckDB have no such cache and no such setting
            self._connection.execute("SET enable_external_file_cache = false")
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("balog")
            self._path = f"/proc/self/fd/{self._file}"
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="balog-")
            self._path = os.path.join(self._folder.name, "block.jsonl")
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
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
    if idle:
        parser = idle.pop()
    else:
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
