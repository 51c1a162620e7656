"""Decompresses files in bounded memory, up to the first damaged byte."""

from __future__ import annotations

import bz2
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from balog.errors import MissingExtraError

_PIECE = 1024 * 1024
_COMPRESSED_READ = 128 * 1024
_ZSTD_READ = 1024  # zstandard can't limit its output, and a kilobyte of zstd decompresses to at most 32 MiB
_LARGEST_WINDOW = 128 * 1024 * 1024
_SKIPPED = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # a frame without data, with which pzstd begins (RFC 8878, 3.1.2)
_BZ2_FEED = 16
_BZ2_HELD = 4 * 1024 * 1024


class DamagedError(Exception):
    """Compressed bytes are damaged. Everything before them has been decompressed."""


def packing(first: bytes) -> str:
    """Return the compression of a file from its first four bytes: "gzip", "zstd", "bz2", or "" for none."""
    if first.startswith(b"\x1f\x8b"):
        return "gzip"
    if first.startswith(b"BZh") and first[3:4] in b"123456789":
        return "bz2"
    return "zstd" if first == b"\x28\xb5\x2f\xfd" or _SKIPPED.fullmatch(first) else ""


def decompress(file: BinaryIO, packing: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file.

    Raises:
        DamagedError: the rest of the file can't be decompressed.
        MissingExtraError: the file is zstd, and zstandard is not installed.
    """
    return {"gzip": _inflate, "zstd": _unzstd, "bz2": _unbz2}[packing](file)


def _inflate(file: BinaryIO) -> Iterator[bytes]:
    """Decompress gzip with one or more members; trailing zeros are ignored."""
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
                yield from _before_damage(before, data)
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


def _before_damage(inflate: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Yield the output before the damaged byte."""
    for number in range(len(data)):
        try:
            chunk = inflate.decompress(data[number : number + 1])
        except zlib.error:
            return
        if chunk:
            yield chunk


def _unbz2(file: BinaryIO) -> Iterator[bytes]:
    """Decompress bz2 with one or more streams; trailing zeros are ignored.

    The checksum of a block (up to 900 kB) is known at its end, so the output is held until then: no byte of a damaged
    block is correct. The input is fed in small pieces, because a finished block is also held while the beginning of the
    next one is decoded.
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
                    if sum(map(len, held)) > _BZ2_HELD:  # runs of one byte, of which a block has tens of millions
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
