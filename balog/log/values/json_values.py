"""Texts that any JSON encoder accepts, limits of an encoded value, and names of changes to it."""

from __future__ import annotations

import re
from typing import Any

MAX_LEVELS = 200
MAX_BYTES = 3 * 1024 * 1024
"""Limits of an encoded payload or context. Twice these bytes are well below the longest line that a broker parses."""

NO_NUMBER = "a number that is nan or infinite, null is written"
SAME_KEYS = "two keys that are written the same, one has a number added"


def clean_text(text: str) -> str:
    """Return the text as a plain ``str`` that UTF-8 can encode, with a question mark for each lone surrogate."""
    text = str.__str__(text)
    return text.encode("utf-8", "replace").decode()


def safe_str(value: Any, convert: Any = str) -> str:
    """Return ``str(value)``, or a description of the value if that raises.

    Args:
        convert: ``str`` or ``repr``.
    """
    try:
        return str.__str__(convert(value))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # such as the panic of an extension in Rust
        return f"<{type_name(value)}, whose {convert.__name__} raised {type_name(error)}>"


_BUILT_IN = frozenset({str, bytes, bool, int, float, type(None)})


def replaced(value: Any, levels: int = 20) -> Any:
    """Return a value without parts whose methods raise: they become their type's name. Dicts and lists are copied."""
    try:
        kind = type(value)
        if kind in _BUILT_IN:
            return value
        if kind is dict and levels:
            return {replaced(key, 0): replaced(item, levels - 1) for key, item in value.items()}
        if (kind is list or kind is tuple) and levels:
            return kind(replaced(item, levels - 1) for item in value)
        value.__class__, kind.__name__, hash(kind), repr(value)  # what raises is replaced
        return value
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return f"<{type_name(value)}>"


def type_name(value: Any) -> str:
    """Return the name of a value's type, without the type's own attributes, which may raise."""
    return str.__str__(type.__getattribute__(type(value), "__name__"))


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))


def is_deeper_than(document: bytes, levels: int) -> bool:
    """Return whether a JSON document nests deeper than ``levels``; a scalar has 0 levels."""
    if document.count(b"[") + document.count(b"{") <= levels:
        return False
    brackets = _STRING.sub(b"", document).translate(None, _NO_BRACKET)
    for _ in range(levels):  # each round removes the innermost level
        if not brackets:
            return False
        brackets = re.sub(rb"\[\]|\{\}", b"", brackets)
    return bool(brackets)
