"""The differences between two documents, by the names of their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct


class DocumentChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One difference: ``path`` is ``streams.NAME.rate``; ``old`` and ``new`` are JSON values.

    ``moved`` is of streams, whose order counts: ``old`` and ``new`` are then the names in their order.
    """

    path: str
    kind: Literal["added", "removed", "changed", "moved"]
    old: Any = None
    new: Any = None


def diff(old: bytes, new: bytes) -> list[DocumentChange]:
    """Compare two JSON documents. An explicit default counts as a difference."""
    return list(_changes("", _by_name(msgspec.json.decode(old)), _by_name(msgspec.json.decode(new))))


def _changes(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[DocumentChange]:
    for name in [*old, *(name for name in new if name not in old)]:
        member_path = f"{path}.{name}" if path else name
        if name not in new:
            yield DocumentChange(path=member_path, kind="removed", old=old[name])
        elif name not in old:
            yield DocumentChange(path=member_path, kind="added", new=new[name])
        elif isinstance(old[name], Mapping) and isinstance(new[name], Mapping):
            yield from _changes(member_path, old[name], new[name])
        elif old[name] != new[name]:
            yield DocumentChange(path=member_path, kind="changed", old=old[name], new=new[name])
    if path == "streams":
        before, after = ([name for name in names if name in old and name in new] for names in (old, new))
        if before != after:
            yield DocumentChange(path=path, kind="moved", old=before, new=after)


def _by_name(document: Any) -> dict[str, Any]:
    """Return the parts of a document by name instead of by index; a missing section is empty."""
    sections: dict[str, Any] = {"streams": [], "filters": [], "tables": [], "callbacks": [], **document}
    return {
        name: {str(part["name"]): {key: value for key, value in part.items() if key != "name"} for part in section}
        if isinstance(section, list)
        else section
        for name, section in sections.items()
    }
