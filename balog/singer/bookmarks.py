"""Compare the values of STATE messages bookmark by bookmark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

_MAX_DEPTH = 50


class Bookmark(NamedTuple):
    """A leaf of a STATE's value: its stream ("" for none), its path in the stream, and its JSON."""

    stream: str
    name: str
    value: str


class BookmarkChange(NamedTuple):
    """A bookmark that differs between two values; None stands for a missing bookmark."""

    stream: str
    name: str
    before: str | None
    after: str | None


def bookmarks(value: Any) -> list[Bookmark]:
    """Return the leaves of a STATE's value: first of ``bookmarks`` by stream, as Singer libraries write it.

    Meltano's own wrapping (``completed.singer_state``) is looked through.
    """
    inner = value
    for wrap in ("completed", "singer_state"):
        if isinstance(inner, dict) and isinstance(inner.get(wrap), dict):
            inner = inner[wrap]
    if not isinstance(inner, dict) or not isinstance(inner.get("bookmarks"), dict):
        return [Bookmark("", name, leaf) for name, leaf in _leaves(inner, 0)]
    marks = [
        Bookmark(stream, name, leaf) for stream, below in inner["bookmarks"].items() for name, leaf in _leaves(below, 0)
    ]
    rest = {key: below for key, below in inner.items() if key != "bookmarks"}
    return marks + [Bookmark("", name, leaf) for name, leaf in _leaves(rest, 0) if rest]


def changes(before: Any, after: Any) -> list[BookmarkChange]:
    """Return the bookmarks that differ, in the order of the later value; removed ones come last."""
    old = {(stream, name): leaf for stream, name, leaf in bookmarks(before)}
    new = {(stream, name): leaf for stream, name, leaf in bookmarks(after)}
    updates = [BookmarkChange(*key, old.get(key), leaf) for key, leaf in new.items() if old.get(key) != leaf]
    return updates + [BookmarkChange(*key, leaf, None) for key, leaf in old.items() if key not in new]


def _leaves(value: Any, depth: int, path: str = "") -> Iterator[tuple[str, str]]:
    if depth < _MAX_DEPTH and isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _leaves(below, depth + 1, f"{path}.{key}" if path else str(key))
    elif depth < _MAX_DEPTH and isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for number, below in enumerate(value):
            yield from _leaves(below, depth + 1, f"{path}[{number}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)
