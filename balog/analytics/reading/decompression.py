"""Compressed files as the bytes that are in them, in bounded memory and as far as they can be read."""

from __future__ import annotations

import bz2
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from balog.errors import MissingExtraError

__all__ = ["DamagedError", "packing", "unpack"]

_PIECE = 1024 * 1024
_COMPRESSED_READ = 128 * 1024
_ZSTD_READ = 1024  # it can't be asked for a part of what comes out, and a kilobyte of zstd holds 32 MiB at most
_LARGEST_WINDOW = 128 * 1024 * 1024
_SKIPPED = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # of a frame without data, with which pzstd begins (RFC 8878, 3.1.2)
_BZ2_FEED = 16
_BZ2_HELD = 4 * 1024 * 1024


class DamagedError(Exception):
    """Compressed bytes that can't be decompressed; all that comes before them was given."""


def packing(first: bytes) -> str:
    """Tell by a file's first four bytes how it is compressed: "gzip", "zstd", "bz2", or "" if it isn't."""
    if first.startswith(b"\x1f\x8b"):
        return "gzip"
    if first.startswith(b"BZh") and first[3:4] in b"123456789":
        return "bz2"
    return "zstd" if first == b"\x28\xb5\x2f\xfd" or _SKIPPED.fullmatch(first) else ""


def unpack(file: BinaryIO, packing: str) -> Iterator[bytes]:
    """Give what is in a file that is compressed in this way.

    Raises:
        DamagedError: from there on it can't be read.
        MissingExtraError: zstd, and zstandard is not installed.
    """
    return {"gzip": _inflate, "zstd": _unzstd, "bz2": _unbz2}[packing](file)


def _inflate(file: BinaryIO) -> Iterator[bytes]:
    """Decompress gzip of one or several members, with zeros behind them or not."""
    inflate = zlib.decompressobj(31)
    while data := file.read(_COMPRESSED_READ):
        while data:
            if inflate.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                inflate = zlib.decompressobj(31)
            before = inflate.copy()
            try:
                chunk = inflate.decompress(data, _PIECE)
            except zlib.error as error:
                yield from _salvaged(before, data)
                raise DamagedError(f"damaged gzip: {str(error).partition(': ')[2] or error}") from None
            yield chunk
            data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
    if not inflate.eof:
        yield inflate.flush()
        raise DamagedError("damaged gzip: it ends early")


def _unzstd(file: BinaryIO) -> Iterator[bytes]:
    """Decompress zstd of one or several frames."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("a zstd file", "store") from None
    decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    is_whole = True
    frame = decompressor.decompressobj()
    while data := file.read(_ZSTD_READ):
        while data:
            try:
                chunk = frame.decompress(data)
            except zstandard.ZstdError as error:
                raise DamagedError(f"damaged zstd: {str(error).rpartition(': ')[2]}") from None
            yield chunk
            is_whole, data = frame.eof, frame.unused_data if frame.eof else b""
            if is_whole:
                frame = decompressor.decompressobj()
    if not is_whole:
        raise DamagedError("damaged zstd: it ends early")


def _salvaged(inflate: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Give what comes out before the byte that is refused."""
    for number in range(len(data)):
        try:
            chunk = inflate.decompress(data[number : number + 1])
        except zlib.error:
            return
        if chunk:
            yield chunk


def _unbz2(file: BinaryIO) -> Iterator[bytes]:
    """Decompress bz2 of one or several streams, with zeros behind them or not.

    A block (up to 900 kB) is known to be right when all of it has come out, so it is held until then: of a damaged one
    nothing is right. Little is fed at a time, since a block that ends well is held too while the next one's beginning
    is looked at.
    """
    stream, is_begun = bz2.BZ2Decompressor(), False
    held: list[bytes] = []
    while data := file.read(_COMPRESSED_READ):
        at = 0
        while at < len(data):
            if stream.eof:
                at = len(data) - len(data[at:].lstrip(b"\0"))
                if at == len(data):
                    break
                stream, is_begun = bz2.BZ2Decompressor(), False
            piece = data[at : at + _BZ2_FEED]
            at += len(piece)
            try:
                chunk = stream.decompress(piece, _PIECE)
                while chunk:
                    held.append(chunk)
                    if sum(map(len, held)) > _BZ2_HELD:  # runs of one byte, which a block has tens of millions of
                        yield from held
                        held.clear()
                    chunk = b"" if stream.eof or stream.needs_input else stream.decompress(b"", _PIECE)
            except OSError:
                raise DamagedError("damaged bz2: a block can't be read") from None
            is_begun = True
            if stream.eof:
                at -= len(stream.unused_data)
            if held:
                yield b"".join(held)
                held.clear()
    if is_begun and not stream.eof:
        raise DamagedError("damaged bz2: it ends early")
