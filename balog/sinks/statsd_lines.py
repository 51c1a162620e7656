"""The lines that statsd reads, plain or with DogStatsD's tags, and datagrams of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from balog.sinks.measures import Kind, Measure, format_number

__all__ = ["Datagram", "Lines", "clean_key", "clean_name", "clean_tag", "dogstatsd", "pack", "plain"]

_MAX_KNOWN = 10_000
_TYPES: dict[Kind, str] = {"counter": "c", "gauge": "g", "timer": "ms"}

Frame = tuple[str, str]
"""What of a line comes before the value, and what after."""


def plain(name_tags: Sequence[str]) -> Lines:
    """Write lines as the first statsd had them; the values of some tags end the name."""

    def frame(kind: Kind, name: str, tags: Mapping[str, str]) -> Frame:
        parts = [clean_name(name), *(clean_name(tags[key]).replace(".", "_") for key in name_tags if tags.get(key))]
        return ".".join(parts) + ":", f"|{_TYPES[kind]}"

    return Lines(frame, is_sign_a_change=True)


def dogstatsd() -> Lines:
    """Write lines as DogStatsD has them, with tags."""

    def frame(kind: Kind, name: str, tags: Mapping[str, str]) -> Frame:
        joint = ",".join(f"{clean_key(key)}:{clean_tag(tag)}" for key, tag in tags.items())
        return f"{clean_name(name)}:", f"|{_TYPES[kind]}|#{joint}" if joint else f"|{_TYPES[kind]}"

    return Lines(frame, is_sign_a_change=False)


class Lines:
    """Writes lines. What is the same in all lines of a series is made once, as long as its tags are the same object.

    Args:
        frame: gives what comes before and after the value.
        is_sign_a_change: whether a gauge with a sign is added to what there is, so that one below zero is set to zero
            before.
    """

    def __init__(self, frame: Callable[[Kind, str, Mapping[str, str]], Frame], *, is_sign_a_change: bool) -> None:
        self._frame = frame
        self._is_sign_a_change = is_sign_a_change
        self._known: dict[int, tuple[Mapping[str, str], Kind, str, Frame]] = {}

    def write(self, measure: Measure) -> bytes | None:
        """Give a measurement's line, without a newline; None when its value is too large to be a number there."""
        kind, name, value, tags, _ = measure
        known = self._known.get(id(tags))
        if known is None or known[0] is not tags or known[1] != kind or known[2] != name:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[id(tags)] = (tags, kind, name, self._frame(kind, name, tags))
        before, after = known[3]
        if kind == "timer":
            value = round(value * 1000, 6)
            if value == float("inf"):
                return None
        elif kind == "gauge" and value < 0 and self._is_sign_a_change:
            return f"{before}0{after}\n{before}{format_number(value)}{after}".encode()
        return f"{before}{format_number(value)}{after}".encode()


class Datagram(NamedTuple):
    """Some lines, and the indexes of the events that they are of."""

    data: bytes
    indexes: list[int]


def pack(lines: Sequence[tuple[int, bytes]], room: int) -> Iterator[Datagram]:
    """Put lines into as few datagrams of at most ``room`` bytes as their order allows."""
    held: list[bytes] = []
    indexes: list[int] = []
    size = 0
    for index, line in lines:
        if held and size + len(line) > room:
            yield Datagram(b"\n".join(held), indexes)
            held, indexes, size = [], [], 0
        held.append(line)
        indexes.append(index)
        size += len(line) + 1
    if held:
        yield Datagram(b"\n".join(held), indexes)


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_NOT_IN_KEYS = re.compile(r"[^\w./-]+")
_NOT_IN_TAGS = re.compile(r"[^\w./:-]+")


@lru_cache(maxsize=4096)
def clean_name(name: str) -> str:
    """Give a name of letters, digits and ``. _ -``, with ``_`` in the place of anything else."""
    return _NOT_IN_NAMES.sub("_", name)


@lru_cache(maxsize=4096)
def clean_key(key: str) -> str:
    """Give a tag's key: a name that may have letters of any script and ``/``."""
    return _NOT_IN_KEYS.sub("_", key)


@lru_cache(maxsize=4096)
def clean_tag(tag: str) -> str:
    """Give a tag's value: a key that may have ``:`` too."""
    return _NOT_IN_TAGS.sub("_", tag)
