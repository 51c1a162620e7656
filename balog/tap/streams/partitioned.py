"""Streams that are synced for each item of a list, such as accounts: the setting ``for_each``.

The state has the items' bookmarks next to the stream's bookmark, which is the largest of all::

    {"bookmarks": {"orders": {"changed_at": "2026-11-22T…", "orders": {"a1": {"changed_at": "2026-11-20T…"}}}}}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from balog.tap.bookmarks.order import order_of
from balog.tap.bookmarks.watermark import Watermark
from balog.tap.errors import SourceError
from balog.tap.streams.injection import Providers


@dataclass(frozen=True)
class ItemSource:
    """The items that a stream is synced for.

    Attributes:
        list_items: returns the items.
        key: the name of an item's identity, if it is a dict.
        name: the name of the items' bookmarks in the state.
        lookback: subtracted from each bookmark: seconds for times, a number for numbers.
    """

    list_items: Callable[[Providers], Any]
    key: str | None
    name: str
    lookback: float

    def records(self, call: Callable[[Providers], Any], providers: Providers) -> Iterator[Any]:
        """Yield the records of all items; with a replication key the state is written after each.

        A new item starts at ``start_date``, whatever the bookmarks of the others. One that failed, and those after it,
        resume at their old bookmarks in the next run. Items that no longer exist keep theirs.

        Args:
            call: calls the stream's function, whose parameter ``item`` is the item.
            providers: make the other arguments.

        Raises:
            SourceError: two items are the same, one has no identity, or a bookmark in the state has the wrong type.
            RecordError: a record has no replication key, or a value of another type.
        """
        context = providers["context"]()
        items = self.list_items(providers) or ()
        key = context.entry.replication_key
        if key is None:
            for item in items:
                yield from call(_with_item(providers, item)) or ()
            return
        order = order_of(context.entry.schema, key)
        first = order.first(context.start_date)
        kept = context.kept(self.name)
        bookmarks: dict[str, Any] = dict(kept) if isinstance(kept, dict) else {}
        seen: set[str] = set()
        for item in items:
            id = self._identity(item)
            if id in seen:
                raise SourceError(f"{self.name}: the source returns {id!r} twice")
            seen.add(id)
            entry = bookmarks.get(id)
            bookmark = entry.get(key) if isinstance(entry, dict) else None
            try:
                if bookmark is not None:
                    order.rank(bookmark)
                start = first if bookmark is None else order.back(bookmark, self.lookback)
            except ValueError as error:
                raise SourceError(f"{self.name}: the bookmark of {id!r} in the state: {error}") from None
            watermark = Watermark(context.stream, key, order)
            with context.starting_at(start):
                for page in call(_with_item(providers, item)) or ():
                    for record in page if isinstance(page, list) else (page,):
                        watermark.see(record)
                    yield page
            # When the next one is requested, the run has written all of this one.
            latest = order.latest(bookmark, watermark.highest)
            if latest != bookmark:
                bookmarks = {**bookmarks, id: {key: latest}}
                context.keep(self.name, bookmarks, at_once=True)

    def _identity(self, item: Any) -> str:
        identity = item.get(self.key) if self.key is not None and isinstance(item, dict) else item
        if isinstance(identity, bool) or not isinstance(identity, (str, int)) or identity == "":
            under = f" under {self.key!r}" if self.key else ""
            raise SourceError(f"an item has no identity{under}: expected a text or a whole number")
        return str(identity)


def _with_item(providers: Providers, item: Any) -> Providers:
    return {**providers, "item": lambda: item}
