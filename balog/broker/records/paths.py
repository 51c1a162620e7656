"""Paths to properties: ``address.city``. A dot separates objects, and a path applies to each item of an array."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Raw

from balog.broker.records.json_members import Members, read_items, read_members, write

Steps = tuple[str, ...]

_PART = re.compile(r"(?:[^.\\]|\\[.\\])+")
_ESCAPED = re.compile(r"\\(.)")


def parse_path(path: str) -> Steps:
    r"""Split a path into names; ``\.`` is a dot in a name and ``\\`` a backslash.

    Raises:
        ValueError: an empty name, or a backslash before anything else.
    """
    steps, index = [], 0
    while True:
        part = _PART.match(path, index)
        if part is None:
            raise ValueError(f"{path!r} is no path to a property; write a.b, and \\. for a dot that is in a name")
        steps.append(_ESCAPED.sub(r"\1", part[0]))
        index = part.end()
        if index == len(path):
            return tuple(steps)
        if path[index] != ".":
            raise ValueError(f"{path!r} is no path to a property; a backslash stands before a dot or a backslash")
        index += 1


def reach(members: Members, steps: Steps, change: Callable[[Members], None]) -> None:
    """Change all objects at a path in place; other values on the path are skipped.

    Every object on the way is written anew, so that nothing of it stays that a reader would not see.
    """
    if not steps:
        change(members)
        return
    raw = members.get(steps[0])
    if raw is not None:
        members[steps[0]] = _within(raw, steps[1:], change)


def _within(raw: Raw, steps: Steps, change: Callable[[Members], None]) -> Raw:
    first = bytes(raw)[:1]
    if first == b"{":
        members = read_members(raw)
        reach(members, steps, change)
        return Raw(write(members))
    if first == b"[":
        return Raw(write([_within(item, steps, change) for item in read_items(raw)]))
    return raw
