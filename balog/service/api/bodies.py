"""Reads, decompresses and splits the body of a request, within limits."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw

from balog.common.errors import MissingExtraError, split_refusal
from balog.common.text import printable
from balog.service.api.errors import ApiError
from balog.singer.batch.compression import NO_LIMITS, decompress
from balog.singer.batch.dialects import BatchError

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Form = Literal["json", "lines", "protobuf"]

_FORMS: dict[str, Form] = {
    "": "json",
    "application/json": "json",
    "application/x-www-form-urlencoded": "json",  # the default of `curl -d`
    "application/x-ndjson": "lines",
    "application/ndjson": "lines",
    "application/jsonl": "lines",
    "application/x-protobuf": "protobuf",
    "application/protobuf": "protobuf",
}
_WANTED = "application/json, application/x-ndjson or application/x-protobuf"


class ClientDisconnected(Exception):
    """The client disconnected before its request was complete."""


class ByteBudget:
    """Counts the bytes of current requests. Above ``limit``, new requests are rejected."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def acquire(self, size: int) -> None:
        """Reserve bytes.

        Raises:
            ApiError: 503, the budget is exhausted.
        """
        if self.used + size > self.limit:
            raise ApiError(503, "the service is busy with other requests", retry_after=1)
        self.used += size

    def release(self, size: int) -> None:
        """Release reserved bytes."""
        self.used -= size


def content_form(content_type: str) -> Form:
    """Return the form of a body from its ``Content-Type``; the default is JSON.

    Raises:
        ApiError: 415, an unsupported type.
    """
    kind = content_type.partition(";")[0].strip().lower()
    form = _FORMS.get(kind)
    if form is None:
        raise ApiError(415, f"Content-Type {kind!r:.100} is not supported; expected {_WANTED}")
    return form


async def read_body(
    receive: Receive, headers: Mapping[str, str], limit: int, budget: ByteBudget | None = None
) -> bytes:
    """Read the body of a request. Its bytes are reserved in ``budget``; the caller releases them.

    Args:
        headers: with names in lower case.
        limit: bytes of the body at most.
        budget: a budget of its own if omitted.

    Raises:
        ApiError: 413 too many bytes, 503 budget exhausted.
        ClientDisconnected: the client disconnected, or was too slow.
    """
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(limit)
    budget = budget or ByteBudget(limit)
    parts: list[bytes] = []
    size = 0
    try:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            part = message.get("body", b"")
            more = message.get("more_body", False)
            if part:
                if size + len(part) > limit:
                    raise _too_large(limit)
                budget.acquire(len(part))
                size += len(part)
                parts.append(part)
    except BaseException:
        budget.release(size)
        raise
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"the body has more than {limit} bytes")


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """Decompress a body according to its ``Content-Encoding``, up to ``limit`` bytes.

    Raises:
        ApiError: 415 unsupported encoding, 413 more than ``limit`` bytes, 400 damaged or truncated.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "zstd"):
        raise ApiError(
            415,
            f"Content-Encoding {encoding!r:.40} is not supported; expected gzip or zstd",
            headers={"Accept-Encoding": "gzip, zstd"},
        )
    parts: list[bytes] = []
    size = 0
    try:
        for block in decompress(io.BytesIO(body), encoding.removeprefix("x-"), NO_LIMITS):  # counted here
            size += len(block)
            if size > limit:
                raise ApiError(413, f"the body has more than {limit} bytes when it is decompressed")
            parts.append(block)
    except BatchError as error:
        raise ApiError(400, f"the body {error}") from None
    except MissingExtraError:
        raise ApiError(415, "zstd is not installed here; send gzip", headers={"Accept-Encoding": "gzip"}) from None
    return b"".join(parts)


_raws = msgspec.json.Decoder(list[Raw])
_raw = msgspec.json.Decoder(Raw)
_SPACE = b" \t\r\n"
_ESCAPED = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_HALF = re.compile("[\ud800-\udfff]")
HALF_PAIR = "half of a surrogate pair, which is no character"


def split(body: bytes, form: Form, limit: int) -> list[bytes]:
    """Split a body into undecoded items, in order.

    A line that is not JSON is an item, too, and so is an event with half a surrogate pair in an array: the reader
    rejects it alone.

    Raises:
        ApiError: 400 not JSON, or empty; 413 more than ``limit`` items.
    """
    if form == "protobuf":
        return [body]
    if form == "lines":
        items = [line for line in body.split(b"\n") if line and not line.isspace()]
    else:
        begin = body.lstrip(_SPACE)[:1]
        if not begin:
            raise ApiError(400, "the body is empty; expected an event, an array of events, or lines")
        try:
            str(body, "utf-8")
            items = _split_array(body) if begin == b"[" else [_raw.decode(body) and body]
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            if path := half_pair_path(body):
                raise ApiError(400, HALF_PAIR, path) from None
            hint = ""
            if begin == b"{" and "trailing" in str(error) and b"\n" in body:
                hint = "; lines of events want Content-Type: application/x-ndjson"
            raise ApiError(400, f"the body is not JSON: {split_refusal(error)[0]}{hint}") from None
    if not items:
        raise ApiError(400, "the body holds no events")
    if len(items) > limit:
        raise ApiError(413, f"the body holds more than {limit} events; send fewer at once")
    return items


def _split_array(body: bytes) -> list[bytes]:
    try:
        return [bytes(item) for item in _raws.decode(body)]
    except msgspec.DecodeError:
        items, end = [], body.index(b"[")
        for item in _raws.decode(_ESCAPED.sub(rb"\\ufffd", body)):  # each as long as before
            begin = end + 1
            while body[begin] in b" \t\r\n,":
                begin += 1
            end = begin + len(bytes(item))
            items.append(body[begin:end])
        return items


def half_pair_path(document: bytes) -> str:
    """Return the path of a text with half a surrogate pair; "" if there is none, or the document is not JSON."""
    if _ESCAPED.search(document):
        with suppress(ValueError, RecursionError):
            for step, value in values_of(json.loads(document, parse_constant=_refuse)):
                if isinstance(value, str) and _HALF.search(value):
                    return path_of(step)
    return ""


def _refuse(constant: str) -> None:
    raise ValueError(constant)


Step: TypeAlias = "tuple[Step | None, str | int]"
"""The place of a value: that of its object or array, and its key or index."""


def values_of(document: Any) -> Iterator[tuple[Step | None, Any]]:
    """Yield each value of a document, and each key that has a value, with its place, which ``path_of`` writes."""
    waiting: list[Iterator[tuple[Step | None, Any]]] = [iter([(None, document)])]
    while waiting:
        for step, value in waiting[-1]:
            yield step, value
            if isinstance(value, dict | list):
                waiting.append(_members(step, value))
                break
        else:
            waiting.pop()


def _members(step: Step | None, value: dict[str, Any] | list[Any]) -> Iterator[tuple[Step | None, Any]]:
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield (step, index), member
    else:
        for name, member in value.items():
            yield (step, name), name
            yield (step, name), member


def path_of(step: Step | None) -> str:
    """Return a place as a path, such as ``$.rows[3]``."""
    parts: list[str] = []
    while step is not None:
        step, name = step
        parts.append(f"[{name}]" if isinstance(name, int) else f".{printable(name[:100])}")
    return "$" + "".join(reversed(parts))
