"""Sorting of records by their replication key.

A bookmark before the end of a stream is correct only if records come in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import IO, Any

import msgspec

from balog.tap.bookmarks.order import Order, is_number
from balog.tap.errors import SourceError, check_number
from balog.tap.json_schema.mismatch import MismatchError
from balog.tap.records.plain import decode_json, unwritable

_PAGE = 100
_encode = msgspec.json.Encoder(decimal_format="number").encode


def request_then_emit(records: Iterable[Any], key: str, *, in_memory: int = 100_000) -> Iterator[list[dict[str, Any]]]:
    """Read all records of a source that does not sort, and yield them in pages in ascending order of a key.

    So a bookmark before the end is correct, and an interrupted run resumes there. In return no record is written
    before all were read. Records with equal values stay in their order; those with null come first. Times are compared
    as instants, whatever their offsets.

    Args:
        records: dicts, or lists of dicts.
        key: the replication key.
        in_memory: the number of records in memory; if there are more, they are sorted in temporary files without
            names, as JSON.

    Raises:
        SourceError: a record has no such property, or a value that cannot be compared; a temporary file cannot be
            written.
        TapError: ``in_memory`` is less than 1.
    """
    check_number("request_then_emit: in_memory", in_memory, least=1)
    return _sorted(records, _Ranks(key), in_memory)


def _sorted(records: Iterable[Any], ranks: _Ranks, in_memory: int) -> Iterator[list[dict[str, Any]]]:
    held: list[tuple[Any, dict[str, Any]]] = []
    runs: list[Iterator[tuple[Any, dict[str, Any]]]] = []
    number = 0
    with ExitStack() as files:
        for given in records:
            for record in given if isinstance(given, list) else (given,):
                number += 1
                held.append((ranks.of(record, number), record))
                if len(held) >= in_memory:
                    held.sort(key=itemgetter(0))
                    runs.append(_read(_written(held, files), ranks))
                    held = []
        held.sort(key=itemgetter(0))
        sorted_records = map(itemgetter(1), merge(*runs, held, key=itemgetter(0)))
        while page := list(islice(sorted_records, _PAGE)):
            yield page


def _written(held: list[tuple[Any, dict[str, Any]]], files: ExitStack) -> IO[bytes]:
    """Return a temporary file with a line of JSON for each record."""
    import tempfile  # slow to import, and seldom needed

    from balog.tap.records.values import anything

    try:
        file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # the stack closes it
        file.writelines(_encode(anything(record)) + b"\n" for _, record in held)
        file.seek(0)
    except OSError as error:
        folder = tempfile.gettempdir()
        raise SourceError(f"records cannot be stored in {folder} to be sorted: {error.strerror}") from None
    except MismatchError as error:
        raise SourceError(f"a record cannot be stored to be sorted: {error}") from None
    except (TypeError, ValueError, RecursionError, ArithmeticError) as error:
        raise SourceError(f"a record cannot be stored to be sorted: {unwritable(error)}") from None
    return file


def _read(file: IO[bytes], ranks: _Ranks) -> Iterator[tuple[Any, dict[str, Any]]]:
    for line in file:
        record = decode_json(line)
        yield ranks.of(record), record


class _Ranks:
    """Makes comparable values of records, all of one order: that of the first value."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._order: Order | None = None

    def of(self, record: dict[str, Any], number: int = 0) -> tuple[Any, ...]:
        """Return the rank of a record's value; that of null is the smallest.

        Raises:
            SourceError: the property is missing, or its value cannot be compared.
        """
        try:
            value = record[self._key]
        except (KeyError, TypeError):
            raise SourceError(f"record {number} has no {self._key!r}, the key of the order") from None
        if value is None:
            return (False,)
        if self._order is None:
            self._order = _order_for(value)
        try:
            return True, self._order.rank(value)
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
