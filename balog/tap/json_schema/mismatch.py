"""Mismatches of values and schemas, with their places, but without the values, which can be secret or personal."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

ANY_NAME = ".*"
"""The path step of a property that the schema does not declare: its name is data."""


class MismatchError(Exception):
    """A value does not fit its schema.

    Args:
        reason: a clause that follows the place.

    Attributes:
        steps: the path from the value outwards; each level adds its step while the exception propagates.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []

    @property
    def path(self) -> str:
        """The JSONPath of the value."""
        return "$" + "".join(reversed(self.steps))


def step(name: str) -> str:
    """Return the JSONPath step of a declared property."""
    return f".{name}" if name.isidentifier() else f"[{msgspec.json.encode(name).decode()}]"


def json_path(steps: Iterable[str | int]) -> str:
    """Return the JSONPath of names and indexes: ``$.orders[1].id``."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in steps)


def type_name(value: Any) -> str:
    """Return the name of a value's type, in JSON's terms if it has one."""
    name = _NAMES.get(type(value))
    return TYPE_WORDS[name] if name else f"an object of Python's type {type(value).__name__}"


TYPE_WORDS = {
    **{name: f"a {name}" for name in ("boolean", "number", "string")},
    **{name: f"an {name}" for name in ("integer", "array", "object")},
    "null": "null",
}
"""The name of each type in messages."""

_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "number",
    str: "string",
    list: "array",
    dict: "object",
}
