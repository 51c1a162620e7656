"""Encode a group's progress in one partition as the metadata of a committed offset.

Kafka keeps one offset for a group and a partition, with a text of up to 4,096 bytes. Messages are settled out of order,
so the offset is the first unsettled one, and the text has the rest: the offset up to which messages were delivered, the
unsettled ones among them with their number of deliveries, and, after a replay, its number.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAX_TEXT = 4000
"""The largest text in bytes; a broker accepts ``offset.metadata.max.bytes``, 4,096 by default."""

ROOMY = 3000
"""Bytes of a text above which no new messages are delivered."""

_PREFIX = "balog1:"
_REPLAY = re.compile(r"balog1:(\d{1,18}):", re.ASCII)
_MAX_BYTES = 1024 * 1024
_MAX_LENGTH = 10_000_000


class CommittedProgress(NamedTuple):
    """A group's progress in one partition.

    Attributes:
        commit: the first unsettled offset.
        handed: the offset up to which messages were delivered, exclusive.
        unsettled: number of deliveries of each unsettled message between the two; all others are settled, or gaps.
        replay: the number of the group's last seek.
    """

    commit: int
    handed: int
    unsettled: dict[int, int]
    replay: int = 0


def encode(progress: CommittedProgress) -> tuple[str, int]:
    """Return the metadata for a commit at ``progress.commit``, and the offset up to which it is complete.

    If the text is too long, it ends early: messages settled beyond that offset would be delivered again after a crash.
    A complete text reaches ``progress.handed``.
    """
    runs = list(_runs(progress))
    prefix = f"{_PREFIX}{progress.replay}:" if progress.replay else _PREFIX
    text = prefix + _write(progress.commit, runs, progress.handed)
    if len(text) <= MAX_TEXT:
        return text, progress.handed
    ends = [progress.commit, *(start for start, _, _ in runs[1:])]

    def cut(count: int) -> str:
        return prefix + _write(progress.commit, runs[:count], ends[count])

    count = bisect_right(range(1, len(runs)), MAX_TEXT, key=lambda count: len(cut(count)))
    return cut(count), ends[count]


def decode(commit: int, text: str | None) -> CommittedProgress | None:
    """Decode a commit's metadata; None if balog did not write it."""
    if not text or not text.startswith(_PREFIX):
        return None
    match = _REPLAY.match(text)
    try:
        packed = base64.b64decode(text[match.end() if match else len(_PREFIX) :], validate=True)
        inflate = zlib.decompressobj()
        numbers = _read_numbers(inflate.decompress(packed, _MAX_BYTES))
        length = next(numbers)
        if inflate.unconsumed_tail or length > _MAX_LENGTH:
            return None
        unsettled: dict[int, int] = {}
        offset = commit
        for gap in numbers:
            offset += gap
            run, attempts = next(numbers), next(numbers)
            if offset + run > commit + length:
                return None
            unsettled.update(dict.fromkeys(range(offset, offset + run), attempts))
            offset += run
    except (ValueError, binascii.Error, zlib.error, StopIteration, RuntimeError):
        return None
    return CommittedProgress(commit, commit + length, unsettled, int(match[1]) if match else 0)


def _runs(progress: CommittedProgress) -> Iterator[tuple[int, int, int]]:
    """Yield (first offset, length, attempts) of neighbours with the same number of deliveries."""
    start = length = attempts = 0
    for offset in sorted(progress.unsettled):
        if length and offset == start + length and progress.unsettled[offset] == attempts:
            length += 1
            continue
        if length:
            yield start, length, attempts
        start, length, attempts = offset, 1, progress.unsettled[offset]
    if length:
        yield start, length, attempts


def _write(commit: int, runs: Iterable[tuple[int, int, int]], handed: int) -> str:
    numbers = bytearray()
    _append(numbers, handed - commit)
    end = commit
    for start, length, attempts in runs:
        for number in (start - end, length, attempts):
            _append(numbers, number)
        end = start + length
    return base64.b64encode(zlib.compress(bytes(numbers), 6)).decode()


def _append(numbers: bytearray, number: int) -> None:
    """Write a number in groups of seven bits, the lowest first, as protobuf does."""
    while number > 0x7F:
        numbers.append(number & 0x7F | 0x80)
        number >>= 7
    numbers.append(number)


def _read_numbers(packed: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            if shift > 63:
                raise ValueError("no number is that long")
            continue
        yield number
        number = shift = 0
    if shift:
        raise ValueError("the last number is cut off")
