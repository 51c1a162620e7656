"""Streams that are synced for each item of a list, such as accounts: the setting ``for_each``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from balog.tap.patterns.partitions import for_each
from balog.tap.streams.injection import Providers


@dataclass(frozen=True)
class ItemSource:
    """The items that a stream is synced for.

    Attributes:
        list_items: returns the items.
        key: the name of an item's identity, if it is a dict.
        name: the name of the items' bookmarks in the state.
        lookback: subtracted from each bookmark.
    """

    list_items: Callable[[Providers], Any]
    key: str | None
    name: str
    lookback: float

    def records(self, call: Callable[[Providers], Any], providers: Providers) -> Iterator[Any]:
        """Yield the records of all items; with a replication key the state is written after each.

        Args:
            call: calls the stream's function, whose parameter ``item`` is the item.
            providers: make the other arguments.

        Raises:
            SourceError: see ``balog.tap.patterns.for_each``.
        """
        context = providers["context"]()
        items = self.list_items(providers) or ()
        if context.entry.replication_key is None:
            for item in items:
                yield from call(_with_item(providers, item)) or ()
            return
        start = context.bookmark
        try:
            for partition in for_each(context, items, key=self.key, name=self.name, lookback=self.lookback):
                context.bookmark = partition.bookmark
                yield from partition.watch(call(_with_item(providers, partition.item)) or ())
        finally:
            context.bookmark = start


def _with_item(providers: Providers, item: Any) -> Providers:
    return {**providers, "item": lambda: item}
