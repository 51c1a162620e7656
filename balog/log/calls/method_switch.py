"""Methods of disabled levels that return at once."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from balog.event import LEVELS

if TYPE_CHECKING:
    from balog.log.recorder import Recorder


class MethodSwitch:
    """Gives the methods of levels that no output writes a body that does nothing.

    The functions stay the same objects, because a program may keep ``debug = log.debug``. It follows changes, too.

    Args:
        owner: the class of loggers. Each level has a method with its name in lower case.
    """

    def __init__(self, owner: type) -> None:
        self._methods: list[tuple[int, FunctionType, CodeType]] = []
        for level, number in LEVELS.items():
            method = vars(owner)[level.lower()]
            self._methods.append((number, method, method.__code__))

    def use_levels(self, recorder: Recorder | None) -> None:
        """Enable the methods whose level a recorder writes on any channel; all of them without a recorder."""
        threshold = 0 if recorder is None else recorder.threshold
        for number, method, body in self._methods:
            wanted = body if threshold <= number else _nothing.__code__
            if method.__code__ is not wanted:
                method.__code__ = wanted


def _nothing(self: object, event: Any = "", /, *args: Any, **fields: Any) -> None:
    return
