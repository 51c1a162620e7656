"""Paths of the parts of a value."""

from __future__ import annotations

import re

import msgspec

_MAX_PATH = 200
_CUT = "…"
_NAME = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_encode = msgspec.json.Encoder().encode


class ValuePath:
    """The path of a value; ``identity`` is the id of the container at this path."""

    __slots__ = ("identity", "levels", "outer", "step")

    def __init__(self, step: str | int, outer: ValuePath | None, levels: int) -> None:
        self.step = step
        self.outer = outer
        self.levels = levels
        self.identity = 0

    def to(self, step: str | int) -> ValuePath:
        """Return the path of a part."""
        return ValuePath(step, self, self.levels + 1)

    def is_inside(self, identity: int) -> bool:
        """Return whether a container around this path has this id."""
        place = self.outer
        while place is not None:
            if place.identity == identity:
                return True
            place = place.outer
        return False

    def __str__(self) -> str:
        steps: list[str] = []
        place: ValuePath | None = self
        while place is not None and place.outer is not None:
            step = place.step
            if isinstance(step, int):
                steps.append(f"[{step}]")
            else:
                steps.append(f".{step}" if _NAME.fullmatch(step) else f"[{_encode(step[:100]).decode()}]")
            place = place.outer
        text = "$" + "".join(reversed(steps))
        return text if len(text) <= _MAX_PATH else text[:_MAX_PATH] + _CUT
