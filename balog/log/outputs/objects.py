"""Outputs that a program passes as objects: a callable, a text or binary stream, or an output of its own."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from typing import Any

from balog.common.errors import ConfigError
from balog.event import Event, decode_own
from balog.log.outputs.base import LogOutput
from balog.log.outputs.calls import ThreadBlock
from balog.log.outputs.streams import write_line


def object_name(output: Any) -> str:
    """Return the name of an object's function or class."""
    qualname = getattr(output, "__qualname__", None)
    return qualname if isinstance(qualname, str) else type(output).__qualname__


def is_object(value: Any) -> bool:
    """Return whether a value can be an output by itself."""
    return isinstance(value, LogOutput) or callable(getattr(value, "write", None)) or callable(value)


def open_object(output: Any) -> LogOutput:
    """Return the output for an object.

    Raises:
        ConfigError: it is a class, a function whose call only makes a coroutine or a generator, or a stream that is
            closed or only for reading.
    """
    if isinstance(output, type):
        raise ConfigError(f"output {output.__qualname__} is a class; pass an object of it")
    if isinstance(output, LogOutput):
        return output
    if not callable(getattr(output, "write", None)):
        if is_deferred(output):
            raise ConfigError(f"output {object_name(output)} is async or a generator; pass a plain function")
        return CallableOutput(output)
    if isinstance(output, io.IOBase) and (output.closed or not output.writable()):
        raise ConfigError(f"output {type(output).__qualname__} is closed, or only for reading")
    return StreamOutput(output)


def is_deferred(function: Any) -> bool:
    """Return whether a call of a function, or of an object, does not run its body."""
    return any(
        is_kind(each)
        for each in (function, getattr(function, "__call__", None))  # noqa: B004
        for is_kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    )


class CallableOutput(LogOutput):
    """Calls a function with each event, in the thread that logs it.

    Events that the function logs itself do not come back to it.
    """

    def __init__(self, function: Callable[[Event], object]) -> None:
        self._function = function
        self._call = ThreadBlock()

    def write(self, level: str, event: bytes) -> None:
        """Call the function with the decoded event."""
        if not self._call.is_entered:
            with self._call:
                self._function(decode_own(event))


class StreamOutput(LogOutput):
    """JSON lines into a text or binary stream of the program, which stays open at the end."""

    def __init__(self, stream: Any) -> None:
        self._stream = _whole(stream)

    def write(self, level: str, event: bytes) -> None:
        """Write one JSON line, and flush the stream."""
        write_line(self._stream, event + b"\n")


def _whole(stream: Any) -> Any:
    """Return a stream that ``write_line`` accepts: text, or with a binary ``buffer``."""
    if hasattr(stream, "buffer") and hasattr(stream, "flush"):
        return stream
    mode = getattr(stream, "mode", "")
    is_binary = isinstance(stream, (io.RawIOBase, io.BufferedIOBase)) or (isinstance(mode, str) and "b" in mode)
    return _BinaryStream(stream) if is_binary else _TextStream(stream)


class _TextStream:
    def __init__(self, stream: Any) -> None:
        self.write = stream.write
        self.flush = getattr(stream, "flush", _no_flush)
        self.fileno = getattr(stream, "fileno", None)


class _BinaryStream:
    def __init__(self, stream: Any) -> None:
        self.buffer = stream
        self.flush = stream.flush
        self.fileno = stream.fileno


def _no_flush() -> None:
    """Stand in for a stream without ``flush``."""
