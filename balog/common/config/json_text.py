"""Parse JSON, and find the line and column of each value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

import msgspec

from balog.common.config.contents import decode_text, place
from balog.common.config.document import MAX_TWICE, TOO_DEEP, TWICE, Document, Places, key_path
from balog.common.duplicate_keys import find_duplicate_keys
from balog.common.errors import ConfigError

_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(r'[ \t\r\n]*(?:([{}\[\],:])|"|[^ \t\r\n{}\[\],:"]+)')


def parse_json(data: bytes, source: str, float_hook: Callable[[str], Any] | None = None) -> Document:
    """Parse a JSON file.

    Args:
        data: UTF-8, with or without a byte order mark.
        source: the file, for errors.
        float_hook: converts the text of each number with a fraction or an exponent; None for floats.

    Raises:
        ConfigError: it is not JSON (with line and column).
    """
    text = decode_text(data, source)
    try:
        document = msgspec.json.Decoder(float_hook=float_hook).decode(text)
    except msgspec.DecodeError as error:
        raise _syntax_error(text, source, error) from None
    except RecursionError:
        raise ConfigError(TOO_DEEP, source) from None
    twice = islice(find_duplicate_keys(data.removeprefix(_BOM)), MAX_TWICE)
    return Document(document, [(TWICE, path) for path in twice], lambda: _places(text))


def _syntax_error(text: str, source: str, decode_error: msgspec.DecodeError) -> ConfigError:
    """Return the error of Python's reader, which has line and column; msgspec's where that reader allows more."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
        return ConfigError(f"not JSON: {reason}", place(source, error.lineno, error.colno))
    except (ValueError, RecursionError):  # a number of too many digits, too deep
        pass
    return ConfigError(f"not JSON: {decode_error}", source)


def _places(text: str) -> Places:
    """Return the places of a text that is valid JSON: those of keys for members, of the first character otherwise."""
    positions: dict[str, tuple[int, int]] = {}
    open_parts: list[tuple[str, int]] = []  # the path, and the next index of a list; -1 for an object
    member = False  # the next text is a key
    path, position, line, beginning = "$", 0, 1, 0
    while match := _TOKEN.match(text, position):
        start = match.end() - len(match[0].lstrip(" \t\r\n"))
        line += text.count("\n", position, start)
        beginning = max(beginning, text.rfind("\n", position, start) + 1)
        at, position, sign = (line, start - beginning + 1), match.end(), match[1]
        string = None
        if text[start] == '"':
            string, position = scanstring(text, start + 1)
        if string is not None and member:
            path, member = key_path(open_parts[-1][0], string), False
            positions[path] = at
        elif sign in ("}", "]"):
            open_parts.pop()
        elif sign == ",":
            member = _next_item(open_parts)
            path = _item_path(open_parts)
        elif sign != ":":
            positions.setdefault(path, at)
            if sign is not None:
                open_parts.append((path, -1 if sign == "{" else 0))
                member = sign == "{"
                path = _item_path(open_parts)
    return positions


def _next_item(open_parts: list[tuple[str, int]]) -> bool:
    """Count an item of the innermost list; return whether the innermost part is an object."""
    path, index = open_parts[-1]
    if index >= 0:
        open_parts[-1] = (path, index + 1)
    return index < 0


def _item_path(open_parts: list[tuple[str, int]]) -> str:
    path, index = open_parts[-1]
    return f"{path}[{index}]" if index >= 0 else path
