"""Sorting of records by their replication key.

A bookmark before the end of a stream is correct only if records come in ascending order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from msgspec import MsgspecError, msgpack

from balog.tap.bookmarks.order import Order, is_number
from balog.tap.errors import SourceError, TapError
from balog.tap.json_schema.mismatch import MismatchError
from balog.tap.records.plain import simplify

if TYPE_CHECKING:
    import sqlite3

_PAGE = 100


def request_then_emit(
    records: Iterable[Any],
    key: str,
    *,
    kind: Literal["time", "number", "text"] | None = None,
    in_memory: int = 100_000,
    folder: str | os.PathLike[str] | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """Read all records of a source that does not sort, and yield them in pages in ascending order of a key.

    So a bookmark before the end is correct, and an interrupted run resumes there. In return no record is written
    before all were read. Records with equal values stay in their order; those with null come first.

    Args:
        records: dicts, or lists of dicts.
        key: the replication key.
        kind: how values are compared: times as instants, whatever their offsets. None: that of the first value.
        in_memory: the number of records in memory; if there are more, they are sorted in a temporary SQLite file,
            which has no name and is gone when this ends, however it does.
        folder: the folder of that file; None means the system's for temporary files.

    Raises:
        SourceError: a record has no such property, or a value that cannot be compared; the temporary file cannot be
            written.
        TapError: ``in_memory`` is less than 1.
    """
    if in_memory < 1:
        raise TapError(f"request_then_emit(…, in_memory={in_memory}): want at least 1")
    return _sorted(records, _Ranks(key, kind), in_memory, folder)


def _sorted(
    records: Iterable[Any], ranks: _Ranks, in_memory: int, folder: str | os.PathLike[str] | None
) -> Iterator[list[dict[str, Any]]]:
    held: list[tuple[bytes, int, dict[str, Any]]] = []
    table: SortedTable | None = None
    number = 0
    try:
        for given in records:
            for record in given if isinstance(given, list) else (given,):
                number += 1
                held.append((sort_key(ranks.of(record, number)), number, record))
                if len(held) >= in_memory:
                    table = table or SortedTable(folder)
                    table.insert(held)
                    held = []
        if table is None:
            held.sort(key=lambda item: item[:2])
            for at in range(0, len(held), _PAGE):
                yield [record for _, _, record in held[at : at + _PAGE]]
        else:
            table.insert(held)
            held = []
            yield from table.pages(_PAGE)
    finally:
        if table is not None:
            table.close()


class _Ranks:
    """Makes comparable values of records, all of one order."""

    def __init__(self, key: str, kind: Literal["time", "number", "text"] | None) -> None:
        self._key = key
        self._order = Order(kind) if kind else None

    def of(self, record: dict[str, Any], number: int) -> Any:
        """Return the rank of a record's value; None for null.

        Raises:
            SourceError: the property is missing, or its value cannot be compared.
        """
        try:
            value = record[self._key]
        except (KeyError, TypeError):
            raise SourceError(f"record {number} has no {self._key!r}, the key of the order") from None
        if value is None:
            return None
        if self._order is None:
            self._order = _order_for(value)
        try:
            return self._order.rank(value)
        except ValueError as error:
            raise SourceError(f"record {number}: {self._key!r} cannot be compared: {error}") from None


def _order_for(value: Any) -> Order:
    if is_number(value):
        return Order("number")
    try:
        Order("time").rank(value)
    except ValueError:
        return Order("text")
    return Order("time")


_CACHE_KIB = 16 * 1024
_TABLE = "CREATE TABLE records (key BLOB, number INTEGER, record BLOB, PRIMARY KEY (key, number)) WITHOUT ROWID"
_EXPONENT_OFFSET = 1 << 62  # makes all exponents of Decimals positive
_NINES = bytes.maketrans(b"0123456789", b"9876543210")


def sort_key(rank: Any) -> bytes:
    """Return bytes that sort like ranks: None first, then texts by their code points, or numbers by their exact value.

    Args:
        rank: None, a text or a finite number; texts and numbers have no common order.
    """
    if rank is None:
        return b""
    if isinstance(rank, str):
        return b"t" + rank.encode("utf-8", "surrogatepass")
    number = Decimal(rank)
    if not number:
        return b"n1"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0").encode()
    exponent = number.adjusted() + _EXPONENT_OFFSET
    if number > 0:
        return b"n2%b%b" % (exponent.to_bytes(8, "big"), digits)
    # All is reversed. The end is larger than any digit, because a longer negative number is smaller.
    return b"n0%b%b\xff" % ((2 * _EXPONENT_OFFSET - exponent).to_bytes(8, "big"), digits.translate(_NINES))


class SortedTable:
    """A temporary SQLite file without a name, which holds records by their keys and numbers.

    Values keep their types if they are JSON's, bytes, datetimes, dates or Decimals. Others become JSON, as they do when
    they are written.

    Args:
        folder: the folder of the file; None means the system's for temporary files.

    Raises:
        SourceError: the file cannot be written, as for all methods.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        import sqlite3
        import tempfile  # slow to import, and seldom needed

        self._folder = os.fspath(folder) if folder is not None else tempfile.gettempdir()
        self._errors = (OSError, sqlite3.Error)
        try:
            file, path = tempfile.mkstemp(dir=folder, prefix="balog-tap-")
            os.close(file)
            try:
                self._connection: sqlite3.Connection = sqlite3.connect(
                    path, isolation_level=None, check_same_thread=False
                )
                for statement in (
                    *("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "PRAGMA locking_mode = EXCLUSIVE"),
                    f"PRAGMA cache_size = -{_CACHE_KIB}",
                    "BEGIN",
                    _TABLE,
                ):
                    self._connection.execute(statement)
            finally:
                os.unlink(path)
        except self._errors as error:
            raise self._unwritable(error) from None

    def insert(self, items: Sequence[tuple[bytes, int, dict[str, Any]]]) -> None:
        """Add records with their keys and numbers."""
        rows = sorted((key, number, _encoded(record, number)) for key, number, record in items)
        try:
            self._connection.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
        except self._errors as error:
            raise self._unwritable(error) from None

    def pages(self, size: int) -> Iterator[list[dict[str, Any]]]:
        """Yield all records in the order of their keys, then numbers."""
        try:
            cursor = self._connection.execute("SELECT record FROM records ORDER BY key, number")
            while rows := cursor.fetchmany(size):
                yield [_decoder.decode(record) for (record,) in rows]
        except self._errors as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        """Delete the file."""
        self._connection.close()

    def _unwritable(self, error: Exception) -> SourceError:
        reason = getattr(error, "strerror", None) or str(error)
        return SourceError(f"records cannot be stored in {self._folder} to be sorted: {reason}")


_DECIMAL, _DATETIME, _DATE, _INTEGER, _TEXT = 1, 2, 3, 4, 5


def _encoded(record: dict[str, Any], number: int) -> bytes:
    try:
        return msgpack.encode(_packable(dict(record)))
    except (MismatchError, MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SourceError(f"record {number} cannot be stored to be sorted: {error}") from None


def _packable(value: Any) -> Any:
    """Return a value as msgpack has it, with extensions for the types that it does not have."""
    kind = type(value)
    if value is None or kind in (bool, float, bytes):
        return value
    if kind is str:
        return value if value.isascii() else msgpack.Ext(_TEXT, value.encode("utf-8", "surrogatepass"))
    if kind is int:
        return value if value.bit_length() < 64 else msgpack.Ext(_INTEGER, b"%x" % value)
    if kind is list:
        return [_packable(item) for item in value]
    if kind is dict:
        return {name: _packable(item) for name, item in value.items()}
    if kind is Decimal:
        return msgpack.Ext(_DECIMAL, str(value).encode())
    if kind is datetime:
        return msgpack.Ext(_DATETIME, value.isoformat().encode())
    if kind is date:
        return msgpack.Ext(_DATE, value.isoformat().encode())
    return _packable(simplify(value))


def _extension(code: int, data: memoryview) -> Any:
    if code == _TEXT:
        return bytes(data).decode("utf-8", "surrogatepass")
    text = bytes(data).decode()
    if code == _DECIMAL:
        return Decimal(text)
    if code == _DATETIME:
        return datetime.fromisoformat(text)
    return date.fromisoformat(text) if code == _DATE else int(text, 16)


_decoder = msgpack.Decoder(ext_hook=_extension)
