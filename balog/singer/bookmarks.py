"""Replication values and their order, the bookmarks of streams in states, and what differs between two states."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
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


_MAX_MENTION_DEPTH = 8
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")
_SORTED_ALIKE = re.compile("[0-9a-z]+|[0-9A-Z]+")  # databases sort others by collations of their own, as a and B
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?")
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:(?P<separator>[T ])\d\d:\d\d:\d\d(?P<fraction>\.\d{1,9})?(?P<zone>Z|[+-]00:?00)?)?"
)


def _comparable(value: Any) -> tuple[str, Any] | None:
    """Return a value and its kind: times as instants, numbers (also as digits), texts that all databases sort alike."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return "number", value
    if not isinstance(value, str):
        return None
    if value[4:5] == "-":
        try:
            when = datetime.fromisoformat(value[:-1] + "+00:00" if value[-1:] in "Zz" else value)
            return "time", when if when.tzinfo else when.replace(tzinfo=timezone.utc)
        except ValueError:
            pass
    if _NUMBER.fullmatch(value):  # some sources write numbers as text: "10" is after "9"
        return "number", Decimal(value) if "." in value else int(value)
    return ("lower" if value.islower() else "upper", value) if _SORTED_ALIKE.fullmatch(value) else None


def is_after(value: Any, other: Any) -> bool:
    """Return whether the first of two replication values is later; False if they are not comparable."""
    are_texts = value.__class__ is str and other.__class__ is str and len(value) == len(other)
    if are_texts and (value[4:5], value[-1:]) == (other[4:5], other[-1:]) == ("-", "Z"):
        return bool(value > other)  # usual times: strings of one form sort by time
    left, right = _comparable(value), _comparable(other)
    return left is not None and right is not None and left[0] == right[0] and bool(left[1] > right[1])


def is_naive(value: Any) -> bool:
    """Return whether a value is a time without an offset, as in ``2026-11-20T07:00:00``."""
    return isinstance(value, str) and value[4:5] == "-" and _NAIVE.fullmatch(value) is not None


def seconds_between(start: Any, other: Any) -> float | None:
    """Return the seconds from one time to another; None if they are not times."""
    left, right = _comparable(start), _comparable(other)
    if left is None or right is None or left[0] != "time" or right[0] != "time":
        return None
    return float((right[1] - left[1]).total_seconds())


def middle_of(lowest: Any, highest: Any, form: str) -> str:
    """Return a time between two others, in the ISO 8601 form of a text; "" if there is none, or no such form."""
    left, right, match = _comparable(lowest), _comparable(highest), _ISO.fullmatch(form)
    if left is None or right is None or left[0] != "time" or right[0] != "time" or match is None:
        return ""
    middle = (left[1] + (right[1] - left[1]) / 2).astimezone(timezone.utc)
    text = middle.strftime("%Y-%m-%d")
    if separator := match["separator"]:
        fraction = "." + "0" * (len(match["fraction"]) - 1) if match["fraction"] else ""
        text += separator + middle.strftime("%H:%M:%S") + fraction + (match["zone"] or "")
    return text if is_after(text, lowest) and is_after(highest, text) else ""


def bookmark_of(state: Any, stream: str, key: str | None) -> Any:
    """Return a stream's bookmark; None if the state has no single value for it.

    Supported are the forms of singer-python (``bookmarks.STREAM.KEY``), the Meltano SDK
    (``bookmarks.STREAM.replication_key_value``) and early taps (``STREAM``).
    """
    if not isinstance(state, dict):
        return None
    marks = state.get("bookmarks", state)
    mark = marks.get(stream) if isinstance(marks, dict) else None
    if not isinstance(mark, dict):
        return mark if isinstance(mark, (str, int, float)) and not isinstance(mark, bool) else None
    bookmark = mark.get(key) if key else None
    if bookmark is None:
        bookmark = mark.get("replication_key_value")
    return bookmark if isinstance(bookmark, (str, int, float)) and not isinstance(bookmark, bool) else None


def mentions(state: Any, stream: str, depth: int = _MAX_MENTION_DEPTH) -> bool:
    """Return whether a state has any value for a stream, at any level, such as a partition."""
    if depth and isinstance(state, list):
        return any(mentions(item, stream, depth - 1) for item in state)
    if not depth or not isinstance(state, dict):
        return False
    return bool(state.get(stream)) or any(mentions(item, stream, depth - 1) for item in state.values())
