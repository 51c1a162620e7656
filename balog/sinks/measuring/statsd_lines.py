"""Lines in statsd's format, plain or with DogStatsD's tags, datagrams of them, and the rate of datagrams."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from balog.common.token_bucket import TokenBucket
from balog.event.batches import split
from balog.sinks.measuring.measures import Kind, Measure, format_number

_MAX_KNOWN = 10_000
_BURST = 0.01  # seconds
_TYPES: dict[Kind, str] = {"counter": "c", "gauge": "g", "timer": "ms"}

Frame = tuple[str, str]
"""The parts of a line before and after the value."""


class Lines:
    """Writes lines. The constant parts of a series are cached by the identity of its tags.

    Args:
        name_tags: the lines are plain, and the values of these tags end the name; None for DogStatsD's with all tags.
    """

    def __init__(self, name_tags: Sequence[str] | None) -> None:
        self._name_tags = name_tags
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
        elif kind == "gauge" and value < 0 and self._name_tags is not None:  # a sign would change the current value
            return f"{before}0{after}\n{before}{format_number(value)}{after}".encode()
        return f"{before}{format_number(value)}{after}".encode()

    def _frame(self, kind: Kind, name: str, tags: Mapping[str, str]) -> Frame:
        """Return the parts of a line before and after the value."""
        if self._name_tags is None:
            joint = ",".join(f"{clean_key(key)}:{clean_tag(tag)}" for key, tag in tags.items())
            return f"{clean_name(name)}:", f"|{_TYPES[kind]}|#{joint}" if joint else f"|{_TYPES[kind]}"
        ends = (clean_name(tags[key]).replace(".", "_") for key in self._name_tags if tags.get(key))
        return ".".join([clean_name(name), *ends]) + ":", f"|{_TYPES[kind]}"


class Datagram(NamedTuple):
    """A datagram, and the indexes of its events."""

    data: bytes
    indexes: list[int]


def pack(lines: Sequence[tuple[int, bytes]], room: int) -> Iterator[Datagram]:
    """Put lines into as few datagrams of at most ``room`` bytes as their order allows."""
    for part in split(lines, lambda line: len(line[1]), room):
        yield Datagram(b"\n".join(line for _, line in part), [index for index, _ in part])


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


def datagram_limit(rate: float) -> TokenBucket:
    """Return a limit of datagrams, which a slow receiver drops, with bursts of a hundredth of a second."""
    return TokenBucket(rate, rate * _BURST)


def wait_for_turn(limit: TokenBucket) -> None:
    """Wait until the next datagram may be sent; after a wait, a burst is there."""
    if wait := limit.take():
        time.sleep(wait + _BURST)
