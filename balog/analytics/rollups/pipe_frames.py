"""Frames between a process and its children: the length in four bytes, then MessagePack."""

from __future__ import annotations

from typing import IO, Any

import msgspec

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def read_frame(file: IO[bytes]) -> Any:
    """Read a frame. Return None at the end of the file."""
    head = file.read(4)
    if len(head) < 4:
        return None
    return _decode(file.read(int.from_bytes(head, "big")))


def write_frame(file: IO[bytes], content: Any) -> None:
    """Write and flush a frame."""
    data = _encode(content)
    file.write(len(data).to_bytes(4, "big") + data)
    file.flush()
