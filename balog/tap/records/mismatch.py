"""Mismatches of values and schemas, with their places, but without the values, which can be secret or personal."""

from __future__ import annotations

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


def type_name(value: Any) -> str:
    """Return the name of a value's type, in JSON's terms if it has one."""
    return _NAMES.get(type(value)) or f"an object of Python's type {type(value).__name__}"


_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}
