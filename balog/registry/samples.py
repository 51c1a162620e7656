"""Reads files of events or payloads: JSON lines, an array, or one pretty-printed object; gzip and zstd are unpacked."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

import msgspec
from msgspec import Raw

from balog.errors import EventError, MissingExtraError, split_refusal
from balog.event import MAX_EVENT_BYTES, check_keys, decode

_MAX_WHOLE = 64 << 20


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
    with _unpacked(file) as unpacked, _event_errors():
        stream = unpacked
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
            stream = io.BufferedReader(_Joined(rest, stream))
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


@contextmanager
def _unpacked(file: IO[bytes]) -> Iterator[IO[bytes]]:
    head = file.read(4)
    stream: IO[bytes] = io.BufferedReader(_Joined(head, file))
    if head[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=stream) as unpacked:
            yield io.BufferedReader(unpacked, 1 << 20)
    elif head == b"\x28\xb5\x2f\xfd":
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError("reading zstd", "store") from None
        with zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True) as unpacked:
            yield io.BufferedReader(unpacked, 1 << 20)
    else:
        yield stream


@contextmanager
def _event_errors() -> Iterator[None]:
    try:
        yield
    except (zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise EventError(f"a broken archive: {error}") from None
    except _UNREADABLE as error:
        raise _problem(error, "objects") from None
    except Exception as error:
        if type(error).__module__.startswith("zstandard"):
            raise EventError(f"a broken archive: {error}") from None
        raise


class _Joined(io.RawIOBase):
    """The first bytes of a file followed by the rest of the file, which stays open."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head, self._file = memoryview(head), file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        size = len(buffer)
        data: bytes | memoryview
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
        else:
            data = self._file.read(size)
        buffer[: len(data)] = data
        return len(data)
