"""Outputs to the process's own streams: LOG messages on stdout, JSON lines on stderr, or lines for people."""

from __future__ import annotations

import sys
from typing import TextIO

from balog.log.outputs.base import LogOutput
from balog.log.outputs.streams import keep_lines_whole, write_data_line, write_line


def singer_line(level: str, event: bytes) -> bytes:
    """Return an encoded event as a Singer LOG message with a newline."""
    return b'{"type":"LOG","level":"%b","value":%b}\n' % (level.encode(), event)


class SingerOutput(LogOutput):
    """LOG messages on stdout, in order with the output of ``print`` and of a Singer library, from any thread.

    From now on, text for ``sys.stdout`` is written in whole lines; see ``keep_lines_whole``.
    """

    def __init__(self) -> None:
        keep_lines_whole(getattr(sys, "stdout", None))

    def write(self, level: str, event: bytes) -> None:
        """Write one LOG line."""
        write_data_line(singer_line(level, event))


class StderrOutput(LogOutput):
    """JSON on stderr, one event per line."""

    def write(self, level: str, event: bytes) -> None:
        """Write one JSON line."""
        write_line(sys.stderr, event + b"\n")


def default_output() -> str:
    """Return the default output: lines for people on a terminal, JSON lines otherwise."""
    return "console" if is_terminal(getattr(sys, "stderr", None)) else "stderr"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except (ValueError, AttributeError, OSError):  # closed, or an object that has only write()
        return False
