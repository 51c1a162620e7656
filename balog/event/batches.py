"""Batches of events, by number and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def split(
    items: Iterable[Item], size_of: Callable[[Item], int], most_bytes: int, most_items: int | None = None
) -> Iterator[list[Item]]:
    """Yield items in as few parts as their order allows.

    A part, joined with a byte between two items, has at most ``most_bytes``; a larger item is a part by itself. A part
    with ``most_items`` is yielded before the next item is read.
    """
    part: list[Item] = []
    size = 0
    for item in items:
        if part and size + size_of(item) > most_bytes:
            yield part
            part, size = [], 0
        part.append(item)
        size += size_of(item) + 1
        if len(part) == most_items:
            yield part
            part, size = [], 0
    if part:
        yield part
