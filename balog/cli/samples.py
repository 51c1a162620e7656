"""Reads files of events or payloads: JSON lines, an array, or one pretty-printed object; gzip and zstd are unpacked."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import IO, NamedTuple

import msgspec
from msgspec import Raw

from balog.errors import EventError, split_refusal
from balog.event import MAX_EVENT_BYTES, check_keys, decode
from balog.singer.batch.compression import Limits, decompress
from balog.singer.batch.dialects import BatchError

_MAX_WHOLE = 64 << 20
_UNLIMITED = Limits(1 << 62, float("inf"))  # lines are streamed, and the rest has its own limit


class PayloadSample(NamedTuple):
    """A payload from a file.

    Attributes:
        place: ``line 3`` or ``item 3``, counted from 1; "" if the file is one document.
        payload: the payload as JSON; b"" if it could not be read.
        problem: why it could not be read.
        prefix: the path of the payload in the document: ``$``, or ``$.payload`` for an event.
    """

    place: str
    payload: bytes
    problem: EventError | None = None
    prefix: str = "$"


_EVENT = frozenset({"schema", "header", "payload"})
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)

_members = msgspec.json.Decoder(dict[str, Raw])
_raw = msgspec.json.Decoder(Raw)
_array = msgspec.json.Decoder(list[Raw])


def read_samples(file: IO[bytes]) -> Iterator[PayloadSample]:
    """Yield each payload of a file; for an event its payload, for an invalid item its problem.

    Lines are streamed. An array or a single document may have at most 64 MiB.

    Raises:
        EventError: the file cannot be read: a broken archive or an invalid array.
        MissingExtraError: the file is compressed with zstd, and the package is not installed.
    """
    try:
        yield from _read(io.BufferedReader(_Blocks(decompress(file, None, _UNLIMITED)), 1 << 20))
    except BatchError as error:
        raise EventError(f"a broken archive: it {error}") from None
    except _UNREADABLE as error:
        raise _problem(error, "objects") from None


def _read(stream: io.BufferedReader) -> Iterator[PayloadSample]:
    first = b""
    number = 0
    while not first.strip():
        first = stream.readline(MAX_EVENT_BYTES + 2)
        number += 1
        if not first:
            return
    first = first.removeprefix(b"\xef\xbb\xbf")
    start = first.lstrip()[:1]
    if start == b"[" or (start == b"{" and not _is_whole(first)):
        rest = first + stream.read(_MAX_WHOLE + 1 - len(first))
        if start == b"[":
            yield from _items(rest)
            return
        if len(rest) <= _MAX_WHOLE and _is_whole(rest):
            yield _sample("", rest)
            return
        stream = io.BufferedReader(_Blocks(chain((rest,), iter(partial(stream.read, 1 << 20), b""))))
        first = stream.readline(MAX_EVENT_BYTES + 2)
    while first:
        if first.strip():
            yield _sample(f"line {number}", first)
        while len(first) > MAX_EVENT_BYTES and not first.endswith(b"\n"):
            first = stream.readline(MAX_EVENT_BYTES + 2)  # the rest of a line that is too long
        first = stream.readline(MAX_EVENT_BYTES + 2)
        number += 1


def _items(data: bytes) -> Iterator[PayloadSample]:
    if len(data) > _MAX_WHOLE:
        raise EventError(f"an array of more than {_MAX_WHOLE >> 20} MiB; write one event a line")
    for number, item in enumerate(_array.decode(data), 1):
        yield _sample(f"item {number}", bytes(item))


def _sample(place: str, data: bytes) -> PayloadSample:
    if len(data) > MAX_EVENT_BYTES:
        return PayloadSample(place, b"", EventError(f"more than {MAX_EVENT_BYTES} bytes"))
    try:
        check_keys(data)
        if not _members.decode(data).keys() >= _EVENT:
            return PayloadSample(place, data.strip())
        return PayloadSample(place, bytes(decode(data).raw_payload), prefix="$.payload")
    except EventError as error:
        return PayloadSample(place, b"", error)
    except _UNREADABLE as error:
        return PayloadSample(place, b"", _problem(error, "an object"))


def _is_whole(data: bytes) -> bool:
    try:
        _raw.decode(data)
    except _UNREADABLE:
        return False
    return True


def _problem(error: Exception, wanted: str) -> EventError:
    if isinstance(error, msgspec.ValidationError):
        return EventError(f"want {wanted}")
    return EventError(
        "nested too deep" if isinstance(error, RecursionError) else f"not JSON: {split_refusal(error)[0]}"
    )


class _Blocks(io.RawIOBase):
    """Blocks of bytes as a stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._rest or memoryview(next(self._blocks, b""))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        self._rest = data[size:]
        return size
