"""Lines in statsd's format, plain or with DogStatsD's tags, datagrams of them, and the rate of datagrams."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from balog.sinks.measuring.measures import Kind, Measure, format_number

_MAX_KNOWN = 10_000
_BURST = 0.01  # seconds
_TYPES: dict[Kind, str] = {"counter": "c", "gauge": "g", "timer": "ms"}

Frame = tuple[str, str]
"""The parts of a line before and after the value."""


def plain(name_tags: Sequence[str]) -> Lines:
    """Return a writer of plain lines; the values of ``name_tags`` are appended to the name."""

    def frame(kind: Kind, name: str, tags: Mapping[str, str]) -> Frame:
        parts = [clean_name(name), *(clean_name(tags[key]).replace(".", "_") for key in name_tags if tags.get(key))]
        return ".".join(parts) + ":", f"|{_TYPES[kind]}"

    return Lines(frame, is_sign_a_change=True)


def dogstatsd() -> Lines:
    """Return a writer of DogStatsD's lines, with tags."""

    def frame(kind: Kind, name: str, tags: Mapping[str, str]) -> Frame:
        joint = ",".join(f"{clean_key(key)}:{clean_tag(tag)}" for key, tag in tags.items())
        return f"{clean_name(name)}:", f"|{_TYPES[kind]}|#{joint}" if joint else f"|{_TYPES[kind]}"

    return Lines(frame, is_sign_a_change=False)


class Lines:
    """Writes lines. The constant parts of a series are cached by the identity of its tags.

    Args:
        frame: returns the parts of a line before and after the value.
        is_sign_a_change: whether a gauge with a sign changes the current value, so that a gauge below zero must be set
            to zero first.
    """

    def __init__(self, frame: Callable[[Kind, str, Mapping[str, str]], Frame], *, is_sign_a_change: bool) -> None:
        self._frame = frame
        self._is_sign_a_change = is_sign_a_change
        self._known: dict[int, tuple[Mapping[str, str], Kind, str, Frame]] = {}

    def write(self, measure: Measure) -> bytes | None:
        """Return the line of a measurement, without a newline; None if its value is too large."""
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
    """A datagram, and the indexes of its events."""

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
    """Return a name of ASCII characters and ``. _ -``, with ``_`` instead of others."""
    return _NOT_IN_NAMES.sub("_", name)


@lru_cache(maxsize=4096)
def clean_key(key: str) -> str:
    """Return a tag's key; unlike a name it may have word characters of any script and ``/``."""
    return _NOT_IN_KEYS.sub("_", key)


@lru_cache(maxsize=4096)
def clean_tag(tag: str) -> str:
    """Return a tag's value; unlike a key it may have ``:``."""
    return _NOT_IN_TAGS.sub("_", tag)


class RateLimit:
    """Limits datagrams, which a slow receiver drops, to ``rate`` a second, with bursts of a hundredth of a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._next_at = 0.0

    def wait(self) -> None:
        """Wait until the next call is allowed."""
        now = time.monotonic()
        self._next_at = max(self._next_at, now) + 1 / self._rate
        if self._next_at - now > _BURST:
            time.sleep(self._next_at - now)
