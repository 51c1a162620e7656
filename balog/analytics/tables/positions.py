"""Finds the line of an event in its source, for errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from balog.analytics.reading.blocks import Block, new_buffer
from balog.analytics.reading.forms import EventLines, read_parts
from balog.analytics.reading.topics import is_topic, read_topic
from balog.errors import BalogError

if TYPE_CHECKING:
    from balog.analytics.reading.inputs import Inputs
    from balog.analytics.reading.tasks import Slice


class _Header(msgspec.Struct):
    id: str


class _Event(msgspec.Struct):
    header: _Header


_decode = msgspec.json.Decoder(_Event).decode


def position_of(event: str, inputs: Inputs) -> tuple[str, int] | None:
    """Return the path and offset (in bytes of the decompressed file) of an event, or None if it is not found.

    It reads the sources from the beginning.
    """
    wanted = event.encode()
    buffer = new_buffer()
    with suppress(BalogError, OSError):  # the source has vanished; the event's id is enough
        for task in inputs.tasks():
            for piece in task:
                for line, offset in _lines(piece, wanted, buffer, inputs):
                    with suppress(msgspec.MsgspecError, RecursionError):
                        if _decode(line).header.id == event:
                            return piece.path, offset
    return None


def _lines(piece: Slice, wanted: bytes, buffer: bytearray, inputs: Inputs) -> Iterator[tuple[bytes, int]]:
    """Yield the events that contain some bytes, each with its offset."""
    parts = (
        read_topic(piece) if is_topic(piece.path) else read_parts(piece, buffer, inputs.storages, inputs.forms, False)
    )
    for part in parts:
        if isinstance(part, EventLines):
            yield from ((line, offset) for line, offset in zip(part.events, part.offsets) if wanted in line)
        elif isinstance(part, Block):
            data, start = bytes(part.data), 0
            while (found := data.find(wanted, start)) >= 0:
                begin = data.rfind(b"\n", 0, found) + 1
                start = data.find(b"\n", found) + 1 or len(data)
                yield data[begin:start], part.offset + begin
