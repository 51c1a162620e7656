"""Paths of the parts of a value."""

from __future__ import annotations

import re

import msgspec

_MAX_PATH = 200
_CUT = "…"
_NAME = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_encode = msgspec.json.Encoder().encode


class ValuePath:
    """The path of a value; ``container`` is the id of the container that has it."""

    __slots__ = ("container", "levels", "outer", "step")

    def __init__(self, step: str | int, outer: ValuePath | None, levels: int, container: int = 0) -> None:
        self.step = step
        self.outer = outer
        self.levels = levels
        self.container = container

    def to(self, step: str | int, container: int) -> ValuePath:
        """Return the path of a part of a container."""
        return ValuePath(step, self, self.levels + 1, container)

    def is_inside(self, identity: int) -> bool:
        """Return whether a container around this path has this id."""
        path: ValuePath | None = self
        while path is not None:
            if path.container == identity:
                return True
            path = path.outer
        return False

    def __str__(self) -> str:
        steps: list[str] = []
        path: ValuePath | None = self
        while path is not None and path.outer is not None:
            step = path.step
            if isinstance(step, int):
                steps.append(f"[{step}]")
            else:
                steps.append(f".{step}" if _NAME.fullmatch(step) else f"[{_encode(step[:100]).decode()}]")
            path = path.outer
        text = "$" + "".join(reversed(steps))
        return text if len(text) <= _MAX_PATH else text[:_MAX_PATH] + _CUT
