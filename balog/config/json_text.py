"""Parse JSON, and find the line and column of each value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

import msgspec

from balog.config.contents import decode_text, place_after
from balog.config.document import MAX_TWICE, TOO_DEEP, TWICE, Document, Places, key_path
from balog.duplicate_keys import find_duplicate_keys
from balog.errors import ConfigError

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
        raise _syntax_error(data.removeprefix(_BOM), source, str(error)) from None
    except RecursionError:
        raise ConfigError(TOO_DEEP, source) from None
    twice = islice(find_duplicate_keys(data.removeprefix(_BOM)), MAX_TWICE)
    return Document(document, [(TWICE, path) for path in twice], lambda: _places(text))


def _syntax_error(data: bytes, source: str, message: str) -> ConfigError:
    """Return msgspec's error with line and column instead of ``(byte 12)``."""
    message = message.removeprefix("JSON is malformed: ")
    reason, _, rest = message.rpartition(" (byte ")
    number = rest.removesuffix(")")
    if not reason or not number.isdigit():
        return ConfigError(f"not JSON: {message[:1].lower()}{message[1:]}", place_after(source, data.rstrip()))
    return ConfigError(f"not JSON: {reason}", place_after(source, data[: _first_wrong(data, int(number))]))


def _first_wrong(data: bytes, noticed: int) -> int:
    """Return the position of the first wrong byte; msgspec reports where it noticed the error, or later."""
    text = data.decode("utf-8", "replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return min(len(text[: error.pos].encode()), noticed)
    except (ValueError, RecursionError):  # a number of too many digits, too deep
        pass
    return noticed


def _places(text: str) -> Places:
    """Return the places of a text that is valid JSON: those of keys for members, of the first character otherwise."""
    found: dict[str, tuple[int, int]] = {}
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
            found[path] = at
        elif sign in ("}", "]"):
            open_parts.pop()
        elif sign == ",":
            member = _next_item(open_parts)
            path = _item_path(open_parts)
        elif sign != ":":
            found.setdefault(path, at)
            if sign is not None:
                open_parts.append((path, -1 if sign == "{" else 0))
                member = sign == "{"
                path = _item_path(open_parts)
    return found


def _next_item(open_parts: list[tuple[str, int]]) -> bool:
    """Count an item of the innermost list; return whether the innermost part is an object."""
    path, index = open_parts[-1]
    if index >= 0:
        open_parts[-1] = (path, index + 1)
    return index < 0


def _item_path(open_parts: list[tuple[str, int]]) -> str:
    path, index = open_parts[-1]
    return f"{path}[{index}]" if index >= 0 else path
