"""The outputs of a process's own streams: LOG messages on stdout, JSON lines on stderr, or lines for people."""

from __future__ import annotations

import os
import re
import sys
from datetime import datetime
from typing import Any, TextIO

import msgspec

from balog.outputs.base import Output
from balog.outputs.streams import keep_lines_whole, write_data_line, write_line

__all__ = [
    "ConsoleOutput",
    "SingerOutput",
    "StderrOutput",
    "console_line",
    "default_output",
    "is_terminal",
    "message_of",
    "singer_line",
]


def singer_line(level: str, event: bytes) -> bytes:
    """Wrap an encoded event into a Singer LOG message with its newline."""
    return b'{"type":"LOG","level":"%b","value":%b}\n' % (level.encode(), event)


class SingerOutput(Output):
    """LOG messages on stdout, in order with what ``print`` and a Singer library write there, from any thread.

    For that, text written to ``sys.stdout`` from now on goes there by whole lines; see ``keep_lines_whole``.
    """

    def __init__(self) -> None:
        keep_lines_whole(getattr(sys, "stdout", None))

    def write(self, level: str, event: bytes) -> None:
        """Write one LOG line."""
        write_data_line(singer_line(level, event))


class StderrOutput(Output):
    """One event a line on stderr, as JSON."""

    def write(self, level: str, event: bytes) -> None:
        """Write one JSON line."""
        write_line(sys.stderr, event + b"\n")


class ConsoleOutput(Output):
    """Lines for people on stderr, in colour on a terminal (unless ``NO_COLOR`` is set)."""

    def write(self, level: str, event: bytes) -> None:
        """Write one readable line, and the traceback below it if there is one."""
        in_colour = is_terminal(sys.stderr) and not os.environ.get("NO_COLOR")
        write_line(sys.stderr, console_line(msgspec.json.decode(event), in_colour=in_colour).encode("utf-8", "replace"))


def default_output() -> str:
    """Lines for people on a terminal, JSON lines everywhere else."""
    return "console" if is_terminal(getattr(sys, "stderr", None)) else "stderr"


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether somebody watches a stream."""
    try:
        return stream is not None and stream.isatty()
    except (ValueError, AttributeError, OSError):  # closed, or something that only knows write()
        return False


_COLOURS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


def console_line(event: dict[str, Any], *, in_colour: bool) -> str:
    """Lay out a decoded event for a person: local time, level, channel, message, ``key=value``; then the traceback.

    Of the context what somebody bound is shown, and not what every event has.
    Control characters are written as escapes: what an event says must not steer a terminal.
    """
    header, payload = event["header"], event["payload"]
    level = header.get("level", "INFO")
    when = datetime.fromisoformat(header["timestamp"].replace("Z", "+00:00")).astimezone()
    name = f"{level:<8}"
    if in_colour:
        name = f"\x1b[{_COLOURS.get(level, '0')}m{name}\x1b[0m"
    bound = {key: value for key, value in header.get("context", {}).items() if key not in _FILLED_IN}
    said = f"{message_of(payload)}  {_named(bound)}".rstrip()
    line = f"{when:%H:%M:%S} {name} {_tame(header['channel'])}  {_tame(said)}\n"
    trace = payload.get("exc_text")
    return f"{line}{_tame(trace.rstrip())}\n" if isinstance(trace, str) else line


_FILLED_IN = frozenset(
    {"fqdn", "application", "application_version", "process", "run_id", "thread", "trace_id", "span_id"}
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _tame(text: str) -> str:
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def message_of(payload: dict[str, Any]) -> str:
    """Say what a payload of any type says: its message, then the rest as ``key=value``."""
    if payload.get("cls_type") == "metric":
        unit = "s" if payload.get("type") == "timer" else ""
        return f"{payload.get('metric')} = {payload.get('value')}{unit} {_named(payload.get('tags'))}".rstrip()
    left_out = _NOT_NAMED_OF_RUN if payload.get("cls_type") == "run" else _NOT_NAMED
    rest = {key: value for key, value in payload.items() if key not in left_out}
    fields = payload.get("fields")
    if isinstance(fields, dict):
        rest.update(fields)
    elif fields:
        rest["fields"] = fields
    named = _named(rest)
    return f"{payload.get('message', payload.get('cls_type', ''))}  {named}".strip()


_NOT_NAMED = frozenset({"cls_type", "version", "message", "fields", "exc_text", "severity", "logger", "exception"})

# Rows by stream come in a table, and when it ran stands in front of the line.
_NOT_NAMED_OF_RUN = _NOT_NAMED | {"streams", "started", "ended", "state", "command"}


def _named(values: Any) -> str:
    if not isinstance(values, dict):
        return "" if values is None else str(values)
    return " ".join(f"{key}={value}" for key, value in values.items())
