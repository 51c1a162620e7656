"""Any Python value as JSON-like data, as well as it can be had: for payloads that do not encode as they are."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from enum import Enum
from types import FunctionType
from typing import Any

import msgspec

__all__ = ["MAX_DEPTH", "clean_text", "is_deeper_than", "safe_str", "salvage"]

MAX_DEPTH = 20
"""Levels of nesting that ``salvage`` keeps."""

_MAX_ITEMS = 10_000
_MAX_TEXT = 64 * 1024
_MAX_TEXT_IN_ALL = 512 * 1024

_BUILTIN = (str, bytes, bytearray, memoryview, int, float, dict, list, tuple, set, frozenset, type(None))


def salvage(value: Any) -> tuple[Any, str]:
    """Turn a value into data that every JSON encoder takes; never raises.

    What JSON has no word for is written as its ``repr``. Texts are cut at 64 Ki characters, and when there are 512 Ki
    in all; nesting beyond 20 levels (so also a cycle) and more than 10,000 items in all are cut off.

    Returns:
        The data, a dict for a dict, and one clause that says what was wrong with the first thing that was replaced.
    """
    work = _Salvage()
    data = work.convert(value, 0)
    if isinstance(value, dict) and not isinstance(data, dict):
        data = {"value": data}
    return data, work.problem or "could not be encoded as it was"


class _Salvage:
    def __init__(self) -> None:
        self.problem = ""
        self._items = 0
        self._text_left = _MAX_TEXT_IN_ALL

    def _note(self, problem: str) -> None:
        self.problem = self.problem or problem

    def convert(self, value: Any, depth: int) -> Any:
        self._items += 1
        if depth > MAX_DEPTH or self._items > _MAX_ITEMS:
            self._note("too deep or too large, cut off")
            return "…"
        try:
            return self._convert(value, depth)
        except Exception as error:  # a container may run code of its own when it is read
            self._note(f"{type(value).__name__} cannot be read: {type(error).__name__}")
            return f"<{type(value).__name__}>"

    def _convert(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if type(value) is int and -(2**63) <= value < 2**63:
            return value
        if type(value) is float:
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return self._members(value, depth)
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.convert(item, depth + 1) for item in self._some(value)]
        if isinstance(value, msgspec.Struct):
            return self._members({name: getattr(value, name) for name in value.__struct_fields__}, depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = (field.name for field in dataclasses.fields(value))
            return self._members({name: getattr(value, name) for name in names if hasattr(value, name)}, depth)
        if isinstance(value, msgspec.Raw):
            return self._raw(value, depth)
        if isinstance(dump := getattr(type(value), "model_dump", None), FunctionType):  # a pydantic model
            return self._members(dump(value), depth)
        if isinstance(value, Mapping):
            return self._members(dict(value), depth)
        try:
            plain = msgspec.to_builtins(value)
        except Exception:
            plain = value
        if plain is not value and isinstance(plain, _BUILTIN):  # dates, UUIDs, enums, decimals, bytes
            return self.convert(plain, depth + 1)
        self._note(f"{type(value).__name__} has no JSON form, its repr is written")
        return self._text(safe_str(value, repr))

    def _raw(self, value: msgspec.Raw, depth: int) -> Any:
        try:
            data = msgspec.json.decode(value)
        except Exception:
            self._note("Raw that is not JSON")
            return self._text(bytes(value).decode("utf-8", "replace"))
        return self.convert(data, depth)

    def _members(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        return {self._key(key): self.convert(item, depth + 1) for key, item in self._some(value.items())}

    def _some(self, items: Any) -> list[Any]:
        """Give the items that there is still room for: a copy, as another thread may go on changing them."""
        room = max(0, _MAX_ITEMS - self._items) + 1
        return list(items)[:room]

    def _key(self, key: Any) -> str:
        if isinstance(key, bytes):
            key = key.decode("utf-8", "replace")
        elif isinstance(key, Enum):
            key = key.value
        return self._text(key if isinstance(key, str) else safe_str(key, repr))

    def _text(self, text: str) -> str:
        cleaned = clean_text(text)
        if cleaned != text:
            self._note("text with lone surrogates")
        limit = min(_MAX_TEXT, self._text_left)
        self._text_left -= min(len(cleaned), limit)
        if len(cleaned) > limit:
            self._note("too large, cut off")
            return cleaned[:limit] + "…"
        return cleaned


def clean_text(text: str) -> str:
    """Give the text as a plain ``str`` that UTF-8 can write, with a question mark for each lone surrogate."""
    text = str.__str__(text)
    return text.encode("utf-8", "replace").decode()


def safe_str(value: Any, convert: Any = str) -> str:
    """Give ``str(value)``, or a word about the value when that raises.

    Args:
        convert: ``repr`` for the other form.
    """
    try:
        return str.__str__(convert(value))
    except Exception as error:
        return f"<{type(value).__name__}, whose {convert.__name__} raised {type(error).__name__}>"


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))


def is_deeper_than(document: bytes, levels: int) -> bool:
    """Tell whether a JSON document nests deeper than so many levels; a scalar has none."""
    if document.count(b"[") + document.count(b"{") <= levels:
        return False
    brackets = _STRING.sub(b"", document).translate(None, _NO_BRACKET)
    for _ in range(levels):  # each round takes the innermost level away
        if not brackets:
            return False
        brackets = re.sub(rb"\[\]|\{\}", b"", brackets)
    return bool(brackets)
