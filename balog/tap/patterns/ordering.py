"""Records in the order of their replication key: watched, or made.

A bookmark in the middle of a stream is right only where records come in ascending order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal

from balog.tap.bookmarks.order import Order, is_number
from balog.tap.errors import SourceError, TapError

__all__ = ["ensure_ordering", "request_then_emit"]

_PAGE = 100


def ensure_ordering(
    records: Iterable[Any],
    key: str,
    direction: Literal["ASC", "DESC"] = "ASC",
    *,
    kind: Literal["time", "number", "text"] | None = None,
) -> Iterator[Any]:
    """Pass records, or pages of them, through as they are; stop at the first that is out of order.

    To be put around the call that asks a source which promises an order. Equal values are in order; those that are null
    are passed over.

    Args:
        records: dicts, or lists of dicts.
        key: the property by which they are ordered.
        direction: ``ASC`` or ``DESC``.
        kind: how values are compared: times as instants, whatever their offsets. Told by the first value if None.

    Raises:
        SourceError: a record is out of order, has no such property, or a value that cannot be compared; the message
            says where.
        TapError: the direction is neither.
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
    """Take all records, put them in ascending order of a key, and give them in pages: for sources that have no order.

    So a bookmark in the middle is right, and an interrupted run goes on there. The price is that nothing is written
    before everything was asked for. Records with equal values stay in their order; those with a null come first.

    Args:
        records: dicts, or lists of dicts.
        key: the replication key.
        kind: see ``ensure_ordering``.
        in_memory: how many records are held; more are sorted in runs of so many and written to temporary files, which
            have no name and are gone when this ends, however it does. At the end a page of each run is held.
        folder: for these files; the system's for temporary files if None.

    Raises:
        SourceError: see ``ensure_ordering``; a temporary file cannot be written.
        TapError: ``in_memory`` is less than 1.
    """
    if in_memory < 1:
        raise TapError(f"request_then_emit(…, in_memory={in_memory}): want at least 1")
    return _sorted(records, _Ranks(key, kind), in_memory, folder)


def _sorted(
    records: Iterable[Any], ranks: _Ranks, in_memory: int, folder: str | os.PathLike[str] | None
) -> Iterator[list[dict[str, Any]]]:
    import heapq

    runs: list[IO[bytes]] = []
    held: list[tuple[Any, int, dict[str, Any]]] = []
    number = 0
    try:
        for given in records:
            for record in given if isinstance(given, list) else (given,):
                number += 1
                rank = ranks.of(record, number)
                # Nulls first; then by rank; then as they came, so that records themselves are never compared.
                held.append(((0,) if rank is None else (1, rank), number, record))
                if len(held) >= in_memory:
                    runs.append(_spilled(held, folder))
                    held = []
        held.sort(key=lambda item: item[:2])
        merged = heapq.merge(*map(_read, runs), held, key=lambda item: item[:2]) if runs else iter(held)
        page: list[dict[str, Any]] = []
        for _, _, record in merged:
            page.append(record)
            if len(page) >= _PAGE:
                yield page
                page = []
        if page:
            yield page
    finally:
        for run in runs:
            run.close()


def _spilled(held: list[tuple[Any, int, dict[str, Any]]], folder: str | os.PathLike[str] | None) -> IO[bytes]:
    import pickle
    import tempfile  # slow to import, and seldom needed

    held.sort(key=lambda item: item[:2])
    file = None
    try:
        file = tempfile.TemporaryFile(dir=folder, prefix="balog-tap-")  # noqa: SIM115  # whoever asked closes it
        for at in range(0, len(held), _PAGE):
            page = [(rank, number, dict(record)) for rank, number, record in held[at : at + _PAGE]]
            pickle.dump(page, file, pickle.HIGHEST_PROTOCOL)
        file.seek(0)
    except OSError as error:
        if file is not None:
            file.close()
        place = folder or tempfile.gettempdir()
        raise SourceError(f"records cannot be put aside in {place} to be sorted: {error.strerror}") from None
    return file


def _read(file: IO[bytes]) -> Iterator[tuple[Any, int, dict[str, Any]]]:
    import pickle

    while True:
        try:
            # Written by this process into a file without a name, so that nobody else can have put anything there.
            yield from pickle.load(file)  # noqa: S301
        except EOFError:
            return


class _Ranks:
    """What is compared in the place of a record's value; one order for all of a source's."""

    def __init__(self, key: str, kind: Literal["time", "number", "text"] | None) -> None:
        self._key = key
        self._order = Order(kind) if kind else None

    def of(self, record: dict[str, Any], number: int) -> Any:
        """Give the rank of a record's value; None where that is null.

        Raises:
            SourceError: there is no such property, or its value has no place in the order.
        """
        try:
            value = record[self._key]
        except (KeyError, TypeError):
            raise SourceError(f"record {number} has no {self._key!r}, by which it should be in order") from None
        if value is None:
            return None
        if self._order is None:
            self._order = _told_by(value)
        try:
            return self._order.rank(value)
        except ValueError as error:
            raise SourceError(f"record {number}: {self._key!r} has no place in the order: {error}") from None


def _told_by(value: Any) -> Order:
    if is_number(value):
        return Order("number")
    try:
        Order("time").rank(value)
    except ValueError:
        return Order("text")
    return Order("time")
