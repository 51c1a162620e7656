"""What a value has wrong by its schema, and where; never the value itself, which may be secret or personal."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["ANY_NAME", "MismatchError", "named", "step"]

ANY_NAME = ".*"
"""The step into a property whose name the schema does not have: such a name is data."""


class MismatchError(Exception):
    """A value that does not fit.

    Args:
        reason: as a clause that goes on after the place.

    Attributes:
        steps: the way to it from within outwards; each level that the fault passes through adds its own.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []

    @property
    def path(self) -> str:
        """The place as a JSONPath."""
        return "$" + "".join(reversed(self.steps))


def step(name: str) -> str:
    """Return the JSONPath's step into a property of the schema."""
    return f".{name}" if name.isidentifier() else f"[{msgspec.json.encode(name).decode()}]"


def named(value: Any) -> str:
    """Say what kind of value this is, in JSON's words where it has one."""
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
