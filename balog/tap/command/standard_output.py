"""Stdout is for Singer messages only: other text for it goes to stderr."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

import msgspec

from balog.log.outputs.streams import hold_stdout, write_line


class _LogMessage(msgspec.Struct):
    value: msgspec.Raw


class _RedirectedStdout(io.TextIOBase):
    """Replaces ``sys.stdout``: text goes to stderr; ``buffer`` and ``fileno`` are those for messages."""

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
    """Redirect everything but messages from stdout to stderr.

    Messages are the bytes for ``sys.stdout.buffer``. Text from ``print``, and the output of child processes and C
    libraries on descriptor 1, go to stderr.

    Raises:
        OSError: at the end, if the messages cannot be written.
    """
    old: TextIO = sys.stdout
    old.flush()
    real = _own_descriptor(old)
    buffer: Any = old.buffer if real is None else open(real, "wb")  # noqa: SIM115  # closed below
    try:
        with redirect_stdout(cast("TextIO", _RedirectedStdout(buffer))):
            yield
            buffer.flush()
    finally:
        if real is not None:
            with suppress(OSError):
                sys.stderr.flush()
            os.dup2(real, 1)
            with suppress(OSError):  # the reader has gone
                buffer.close()


def _own_descriptor(stream: TextIO) -> int | None:
    """Duplicate the descriptor of stdout, and point 1 to stderr; None if stdout is not the process's own."""
    try:
        if stream is not sys.__stdout__ or stream.fileno() != 1:
            return None
        real = os.dup(1)
    except (OSError, ValueError):
        return None
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed, too
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    return real


@contextmanager
def without_log_messages() -> Iterator[None]:
    """Redirect the events of the logger's output ``singer`` from stdout to lines on stderr."""

    def write(line: bytes) -> None:
        if line:
            write_line(sys.stderr, bytes(msgspec.json.decode(line, type=_LogMessage).value) + b"\n")

    with hold_stdout(write):
        yield
