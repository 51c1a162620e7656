"""Outputs that a program passes as objects: a callable, or an output of its own."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

from balog.common.errors import ConfigError
from balog.event import Event, decode_own
from balog.log.outputs.base import LogOutput


class ObjectName(str):
    """The name of an output that was passed as an object, in the place of a config's string.

    Attributes:
        output: the object.
    """

    __slots__ = ("output",)
    output: Any

    @classmethod
    def of(cls, output: Any) -> ObjectName:
        """Return the name of an object's function or class."""
        found = getattr(output, "__qualname__", None)
        made = cls(found if isinstance(found, str) else type(output).__qualname__)
        made.output = output
        return made


def is_object(value: Any) -> bool:
    """Return whether a value can be an output by itself."""
    return isinstance(value, LogOutput) or callable(value) or _is_stream(value)


def _is_stream(value: Any) -> bool:
    return callable(getattr(value, "write", None))


def open_object(output: Any) -> LogOutput:
    """Return the output for an object.

    Raises:
        ConfigError: it is a class, a function whose call only makes a coroutine or a generator, or a stream.
    """
    if isinstance(output, type):
        raise ConfigError(f"output {output.__qualname__} is a class; pass an object of it")
    if isinstance(output, LogOutput):
        return output
    if _is_stream(output):
        raise ConfigError(f"output {type(output).__qualname__} is a stream; pass file:PATH, stderr or a function")
    if _is_deferred(output) or _is_deferred(getattr(output, "__call__", None)):  # noqa: B004
        raise ConfigError(f"output {ObjectName.of(output)} is async or a generator; pass a plain function")
    return CallableOutput(output)


def _is_deferred(function: Any) -> bool:
    """Return whether a call of a function does not run its body."""
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    )


class CallableOutput(LogOutput):
    """Calls a function with each event, in the thread that logs it.

    Events that the function logs itself do not come back to it.
    """

    def __init__(self, function: Callable[[Event], object]) -> None:
        self._function = function
        self._thread = threading.local()

    def write(self, level: str, event: bytes) -> None:
        """Call the function with the decoded event."""
        if getattr(self._thread, "is_calling", False):
            return
        self._thread.is_calling = True
        try:
            self._function(decode_own(event))
        finally:
            self._thread.is_calling = False
