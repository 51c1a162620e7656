"""The order of records by their replication key: checked, or established by sorting.

A bookmark before the end of a stream is correct only if records come in ascending order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from balog.tap.bookmarks.order import Order, is_number
from balog.tap.errors import SourceError, TapError
from balog.tap.patterns.sorted_table import SortedTable, sort_key

_PAGE = 100


def ensure_ordering(
    records: Iterable[Any],
    key: str,
    direction: Literal["ASC", "DESC"] = "ASC",
    *,
    kind: Literal["time", "number", "text"] | None = None,
) -> Iterator[Any]:
    """Pass records, or pages of them, through; raise at the first that is out of order.

    Wrap the call of a source that promises an order. Equal values are in order; null values are ignored.

    Args:
        records: dicts, or lists of dicts.
        key: the property by which they are ordered.
        direction: ``ASC`` or ``DESC``.
        kind: how values are compared: times as instants, whatever their offsets. None: that of the first value.

    Raises:
        SourceError: a record is out of order, has no such property, or a value that cannot be compared.
        TapError: the direction is invalid.
    """
    if direction not in ("ASC", "DESC"):
        raise TapError(f"ensure_ordering(…, {direction!r}): want 'ASC' or 'DESC'")
    return _ensured(records, key, direction == "ASC", _Ranks(key, kind))


def _ensured(records: Iterable[Any], key: str, is_ascending: bool, ranks: _Ranks) -> Iterator[Any]:
    before, before_at = None, 0
    number = 0
    for given in records:
        for record in given if isinstance(given, list) else (given,):
            number += 1
            rank = ranks.of(record, number)
            if rank is None:
                continue
            if before is not None and rank != before and (rank < before) == is_ascending:
                wanted = "ascending" if is_ascending else "descending"
                raise SourceError(
                    f"records are not in {wanted} order of {key!r}: that of record {number} should not come after that "
                    f"of record {before_at}"
                )
            before, before_at = rank, number
        yield given


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
        kind: see ``ensure_ordering``.
        in_memory: the number of records in memory; if there are more, they are sorted in a temporary SQLite file,
            which has no name and is gone when this ends, however it does.
        folder: the folder of that file; None means the system's for temporary files.

    Raises:
        SourceError: see ``ensure_ordering``; the temporary file cannot be written.
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
