"""Bodies of answers, unpacked in bounded memory: urllib3 unpacks without a bound before 2.6, so it is not asked to."""

from __future__ import annotations

import zlib

PACKINGS = frozenset({"gzip", "x-gzip", "deflate"})
"""Values of ``Content-Encoding`` that ``Unpacker`` unpacks."""


class Unpacker:
    """Unpacks a body of gzip or zlib that comes in pieces; of gzip also one of several members (RFC 1952, 2.2)."""

    def __init__(self) -> None:
        self._open = zlib.decompressobj(47)

    def add(self, piece: bytes, limit: int) -> bytes:
        """Return what a piece unpacks to, at most ``limit`` bytes of it.

        Raises:
            zlib.error: the body is damaged.
        """
        content = bytearray()
        while piece and len(content) < limit:
            if self._open.eof:
                if piece[:1] != b"\x1f":
                    break  # padding
                self._open = zlib.decompressobj(47)
            content += self._open.decompress(piece, limit - len(content))
            piece = self._open.unused_data
        return bytes(content)

    @property
    def is_whole(self) -> bool:
        """Whether the body has ended where a packed body ends."""
        return self._open.eof
