"""Reads a slice of a file in any form, as blocks or lines of events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from balog.analytics.reading.blocks import BadLine, Block, Damage, read_blocks
from balog.analytics.reading.files import Slice
from balog.analytics.reading.forms.base import EventLines, FormConverter, Origin
from balog.analytics.reading.forms.detection import HEAD, can_split, detect
from balog.analytics.reading.forms.old import OldConverter
from balog.analytics.reading.forms.options import FormOptions
from balog.analytics.reading.forms.singer import SingerConverter
from balog.analytics.reading.forms.sqs import SqsConverter
from balog.analytics.reading.forms.stderr import StderrConverter
from balog.analytics.reading.remote import StoragePool

_DETECTED = FormOptions()
_CONVERTERS: dict[str, type[FormConverter]] = {
    "sqs": SqsConverter,
    "old": OldConverter,
    "singer": SingerConverter,
    "stderr": StderrConverter,
}


def read_parts(
    piece: Slice, buffer: bytearray, storages: StoragePool, options: FormOptions = _DETECTED, is_growth: bool = False
) -> Iterator[Block | EventLines | BadLine | Damage]:
    """Yield the content of a slice: blocks for a file of events, otherwise ``EventLines`` and ``BadLine``.

    If a file can't be read from the middle, its first slice has the whole file.

    Args:
        piece: the slice.
        buffer: see ``balog.analytics.reading.blocks.new_buffer``.
        storages: opens stores.
        options: the form of the file.
        is_growth: the slice was added to a file, and only the slice is read.
    """
    form, parts = options.form, read_blocks(piece, buffer, storages)
    if form in ("auto", "sqs", "stderr"):
        # The first lines decide the form of the whole file.
        begun, head = _head(read_blocks(Slice(piece.path, 0, HEAD), buffer, storages) if piece.start else parts)
        form = detect(head, piece.path) if form == "auto" else form
        if is_growth or can_split(form, head) or (piece.start, piece.end) == (0, None):
            parts = parts if piece.start else chain(begun, parts)
        elif piece.start:
            return
        else:
            parts = read_blocks(Slice(piece.path), buffer, storages)
    if form == "events":
        yield from parts
        return
    converter = _CONVERTERS[form](Origin(piece.path, options, storages))
    damage = None
    for part in parts:
        if isinstance(part, Block):
            yield from converter.feed(part)
        elif isinstance(part, BadLine):
            yield from converter.reject(part)
        else:
            damage = part
    yield from converter.close(damage)


def _head(parts: Iterator[Block | BadLine | Damage]) -> tuple[list[Block | BadLine | Damage], bytes]:
    """Read up to the first block; return what was read, and the beginning of that block."""
    begun: list[Block | BadLine | Damage] = []
    for part in parts:
        begun.append(part)
        if isinstance(part, Block):
            return begun, bytes(part.data[:HEAD])
    return begun, b"".join(part.tail[:HEAD] for part in begun if isinstance(part, Damage))
