"""Partitions of a stream, such as accounts or projects, each with its own bookmark.

::

    @tap.stream("orders", key_properties=["id"], replication_key="changed_at", is_sorted=False)
    def orders(client, context):
        for account in for_each(context, client.accounts(), key="id"):
            yield from account.watch(client.orders(account.item["id"], since=account.bookmark))

The state has them next to the stream's bookmark, which is the largest of all::

    {"bookmarks": {"orders": {"changed_at": "2026-11-22T…", "accounts": {"a1": {"changed_at": "2026-11-20T…"}}}}}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from balog.tap.bookmarks.order import Order, order_of, plain
from balog.tap.errors import SourceError, TapError


class _Context(Protocol):
    """The part of ``balog.tap.Context`` that is used here."""

    stream: str
    entry: Any

    @property
    def start_date(self) -> str | None:
        """See ``Context.start_date``."""

    def kept(self, name: str) -> Any:
        """See ``Context.kept``."""

    def keep(self, name: str, value: Any, *, at_once: bool = False) -> None:
        """See ``Context.keep``."""


@dataclass(eq=False)
class Partition:
    """One partition of a stream, such as an account, with a bookmark of its own.

    Attributes:
        item: the item of ``for_each``.
        id: its name in the state.
        bookmark: the value to start from; ``start_date`` of the config, or None, the first time.
    """

    item: Any
    id: str
    bookmark: Any
    _key: str
    _order: Order
    highest: Any = None
    is_watched: bool = False

    def watch(self, records: Iterable[Any]) -> Iterator[Any]:
        """Pass the partition's records, or pages of them, through; the largest replication value becomes its bookmark.

        Raises:
            SourceError: a record has no replication key, or a value of another type.
        """
        self.is_watched = True
        rank: Any = None
        for given in records:
            for record in given if isinstance(given, list) else (given,):
                try:
                    value = plain(record[self._key])
                    if value is None:
                        continue
                    found = self._order.rank(value)
                except KeyError:
                    raise SourceError(f"a record of {self.id!r} has no {self._key!r}") from None
                except ValueError as error:
                    raise SourceError(f"a record of {self.id!r}: {self._key!r}: {error}") from None
                if rank is None or found > rank:
                    rank, self.highest = found, value
            yield given

    def forget(self) -> None:
        """Leave the partition's bookmark as it was, because its records are incomplete."""
        self.is_watched, self.highest = True, None


def for_each(
    context: _Context, items: Iterable[Any], *, key: str | None = None, name: str = "accounts", lookback: float = 0
) -> Iterator[Partition]:
    """Yield a partition for each item, with its bookmark; the state is written before the next one.

    A new item starts at ``start_date``, whatever the bookmarks of the others. One that failed, and those after it,
    resume at their old bookmarks in the next run. Items that no longer exist keep theirs.

    Args:
        context: the context of the stream, which needs a replication key. Its records are not sorted over all items:
            declare it with ``is_sorted=False``.
        items: the items, such as accounts.
        key: the name of an item's identity, if it is a dict; otherwise the item itself is the identity.
        name: the name of the bookmarks in the state.
        lookback: subtracted from each bookmark: seconds for times, a number for numbers.

    Raises:
        TapError: the stream has no replication key.
        SourceError: two items are the same, one has no identity, or a bookmark in the state has the wrong type.
    """
    replication_key = context.entry.replication_key
    if replication_key is None:
        raise TapError(f"stream {context.stream!r}: for_each needs a stream with a replication key")
    return _each(context, items, key, name, replication_key, order_of(context.entry.schema, replication_key), lookback)


def _each(
    context: _Context,
    items: Iterable[Any],
    key: str | None,
    name: str,
    replication_key: str,
    order: Order,
    lookback: float,
) -> Iterator[Partition]:
    kept = context.kept(name)
    bookmarks: dict[str, Any] = dict(kept) if isinstance(kept, dict) else {}
    seen: set[str] = set()
    first = order.first(context.start_date)
    for item in items:
        id = _identity(item, key)
        if id in seen:
            raise SourceError(f"{name}: the source returns {id!r} twice")
        seen.add(id)
        entry = bookmarks.get(id)
        bookmark = entry.get(replication_key) if isinstance(entry, dict) else None
        try:
            start = first if bookmark is None else order.back(bookmark, lookback)
            reached = None if bookmark is None else order.rank(bookmark)
        except ValueError as error:
            raise SourceError(f"{name}: the bookmark of {id!r} in the state: {error}") from None
        partition = Partition(item, id, start, replication_key, order)
        yield partition
        # When the next one is requested, the run has written all of this one.
        if not partition.is_watched:
            raise TapError(f"stream {context.stream!r}: pass the records of each partition through watch(…)")
        highest = partition.highest
        if highest is not None and (reached is None or order.rank(highest) > reached):
            bookmarks = {**bookmarks, id: {replication_key: highest}}
            context.keep(name, bookmarks, at_once=True)


def _identity(item: Any, key: str | None) -> str:
    found = item.get(key) if key is not None and isinstance(item, dict) else item
    if isinstance(found, bool) or not isinstance(found, (str, int)) or found == "":
        raise SourceError(f"an item has no identity{f' under {key!r}' if key else ''}: want a text or a whole number")
    return str(found)
