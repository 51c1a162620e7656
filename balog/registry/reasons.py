"""Errors of a JSON Schema validator as one line for people: the place in the payload, and the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from balog.common.text import cut, printable

MASK = "…"
"""What stands for a value of the payload in the messages of jsonschema-rs."""

_MAX_TEXT = 100
_MAX_REASON = 300


def json_path(steps: Sequence[str | int]) -> str:
    """Return a JSONPath (RFC 9535) in one printable line: ``$.lines[2].price``, ``$['a b']``."""
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier() and step.isascii():
            path += f".{shorten(step)}"
        else:
            path += "['" + shorten(step).replace("\\", "\\\\").replace("'", "\\'") + "']"
    return path


def describe_error(error: Any) -> str:
    """Return the reason of an error of jsonschema-rs. Its validator must mask values, as ``compile_schema`` does."""
    if error.kind.name == "propertyNames":  # the message has the name, which is data
        return "has a property whose name the schema forbids"
    return shorten(str(error.message).removeprefix(f"{MASK} "), _MAX_REASON)


def shorten(text: str, limit: int = _MAX_TEXT) -> str:
    """Return a text in at most ``limit`` printable characters."""
    return cut(printable(text[: limit + 1]), limit)
