"""Reads files of events or payloads: JSON lines, an array, or one pretty-printed object; gzip and zstd are unpacked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import IO, NamedTuple

import msgspec
from msgspec import Raw

from balog.common.errors import EventError, split_refusal
from balog.event import MAX_EVENT_BYTES, check_keys, decode
from balog.singer.batch.dialects import BatchError
from balog.topics.archives import Line, read_lines

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
    try:
        yield from _read(read_lines(file))
    except BatchError as error:
        raise EventError(f"a broken archive: it {error}") from None
    except _UNREADABLE as error:
        raise _problem(error, "objects") from None


def _read(lines: Iterator[Line]) -> Iterator[PayloadSample]:
    first = next(lines, None)
    if first is None:
        return
    first = first._replace(data=first.data.removeprefix(b"\xef\xbb\xbf").lstrip())
    taken, size = [first], len(first.data)
    is_array = first.data.startswith(b"[")
    if is_array or (first.data.startswith(b"{") and not _is_whole(first.data)):
        while size <= _MAX_WHOLE and (line := next(lines, None)) is not None:
            taken.append(line)
            size += len(line.data)
        whole = b"\n".join(line.data for line in taken)
        if is_array:
            yield from _items(whole, is_too_long=size > _MAX_WHOLE or not all(line.is_whole for line in taken))
            return
        if _is_whole(whole):
            yield _sample("", whole)
            return
    for line in chain(taken, lines):
        if line.is_whole:
            yield _sample(f"line {line.number}", line.data)
        else:
            yield PayloadSample(f"line {line.number}", b"", EventError(f"more than {MAX_EVENT_BYTES} bytes"))


def _items(data: bytes, *, is_too_long: bool) -> Iterator[PayloadSample]:
    if is_too_long:
        raise EventError("the array is too long; write one event a line")
    for number, item in enumerate(_array.decode(data), 1):
        yield _sample(f"item {number}", bytes(item))


def _sample(position: str, data: bytes) -> PayloadSample:
    try:
        check_keys(data)
        if not _members.decode(data).keys() >= _EVENT:
            return PayloadSample(position, data.strip())
        return PayloadSample(position, bytes(decode(data).raw_payload), prefix="$.payload")
    except EventError as error:
        return PayloadSample(position, b"", error)
    except _UNREADABLE as error:
        return PayloadSample(position, b"", _problem(error, "an object"))


def _is_whole(data: bytes) -> bool:
    try:
        _raw.decode(data)
    except _UNREADABLE:
        return False
    return True


def _problem(error: Exception, wanted: str) -> EventError:
    if isinstance(error, msgspec.ValidationError):
        return EventError(f"expected {wanted}")
    return EventError(
        "nested too deep" if isinstance(error, RecursionError) else f"not JSON: {split_refusal(error)[0]}"
    )
