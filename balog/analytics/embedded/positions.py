"""Positions in a statement, for errors: ``, line 2, column 8``; both count from 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PIECES = re.compile(
    r"""'(?:\\.|''|[^'\\])*'(?!')|"(?:\\.|""|[^"\\])*"(?!")|`(?:``|[^`])*`(?!`)|--[^\n]*|/\*.*?\*/|[^'"`/-]+|.""",
    re.DOTALL,
)


def position(meta: Mapping[str, Any]) -> str:
    """Return the position of a token from what sqlglot knows of it, which counts to its end.

    The result is "" if nothing is known, or the token has line breaks.
    """
    if "start" not in meta:
        return ""
    column = meta["col"] - meta["end"] + meta["start"]
    return f", line {meta['line']}, column {column}" if column > 0 else ""


def offset_position(sql: str, offset: int) -> str:
    """Return the position of a character."""
    return f", line {sql.count(chr(10), 0, offset) + 1}, column {offset - sql.rfind(chr(10), 0, offset)}"


def unclosed(sql: str) -> str:
    """Return the position where a text, a name or a comment begins that does not end; "" if all end."""
    for piece in _PIECES.finditer(sql):
        if piece[0] in ("'", '"', "`") or (piece[0] == "/" and sql.startswith("/*", piece.start())):
            return offset_position(sql, piece.start())
    return ""
