"""Stdout is for Singer messages alone: what else would be written there goes to stderr."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import msgspec

from balog.outputs.streams import hold_stdout, write_line

__all__ = ["messages_only", "without_log_messages"]


class _Log(msgspec.Struct):
    value: msgspec.Raw


class _Aside(io.TextIOBase):
    """Stands for ``sys.stdout``: text goes to stderr; ``buffer`` and ``fileno`` are those that messages go to."""

    def __init__(self, buffer: Any) -> None:
        self._messages = buffer

    @property
    def buffer(self) -> Any:
        return self._messages

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        self._messages.flush()
        sys.stderr.flush()

    def fileno(self) -> int:
        number: int = self._messages.fileno()
        return number

    def isatty(self) -> bool:
        return bool(self._messages.isatty())

    def writable(self) -> bool:
        return True


@contextmanager
def messages_only() -> Iterator[None]:
    """A context in which bytes for ``sys.stdout.buffer`` are messages, and all else that is meant for stdout is not.

    That is text, as ``print`` writes it, and what child processes and C libraries write to descriptor 1.

    Raises:
        OSError: at the end, where what was written cannot be handed on.
    """
    old: TextIO = sys.stdout
    old.flush()
    real = _own_descriptor(old)
    buffer: Any = old.buffer if real is None else open(real, "wb")  # noqa: SIM115  # closed below
    aside = _Aside(buffer)
    sys.stdout = aside
    try:
        yield
        buffer.flush()
    finally:
        if sys.stdout is aside:
            sys.stdout = old
        if real is not None:
            with suppress(OSError):
                sys.stderr.flush()
            os.dup2(real, 1)
            with suppress(OSError):  # the reader has gone: what is left is for nobody
                buffer.close()


def _own_descriptor(stream: TextIO) -> int | None:
    """Give a new descriptor of what stdout is, and let 1 be stderr's; None where stdout is not the process's own."""
    try:
        if stream is not sys.__stdout__ or stream.fileno() != 1:
            return None
        real = os.dup(1)
    except (OSError, ValueError):
        return None
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed: then nothing is said aside
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    return real


@contextmanager
def without_log_messages() -> Iterator[None]:
    """A context in which the logger's output ``singer`` has no place on stdout: its events are lines on stderr."""

    def write(line: bytes) -> None:
        if line:
            write_line(sys.stderr, bytes(msgspec.json.decode(line, type=_Log).value) + b"\n")

    with hold_stdout(write):
        yield
