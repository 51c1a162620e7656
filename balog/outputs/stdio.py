"""Outputs to the process's own streams: LOG messages on stdout, JSON lines on stderr, or lines for people."""

from __future__ import annotations

import os
import re
import sys
from datetime import datetime
from typing import Any, TextIO

import msgspec

from balog.outputs.base import LogOutput
from balog.outputs.streams import keep_lines_whole, write_data_line, write_line


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


class ConsoleOutput(LogOutput):
    """Lines for people on stderr, in colour on a terminal (unless ``NO_COLOR`` is set)."""

    def write(self, level: str, event: bytes) -> None:
        """Write one line, and the traceback after it if there is one."""
        in_colour = is_terminal(sys.stderr) and not os.environ.get("NO_COLOR")
        write_line(sys.stderr, console_line(msgspec.json.decode(event), in_colour=in_colour).encode("utf-8", "replace"))


def default_output() -> str:
    """Return the default output: lines for people on a terminal, JSON lines otherwise."""
    return "console" if is_terminal(getattr(sys, "stderr", None)) else "stderr"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except (ValueError, AttributeError, OSError):  # closed, or an object that has only write()
        return False


_COLOURS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


def console_line(event: dict[str, Any], *, in_colour: bool) -> str:
    """Return a decoded event as text: local time, level, channel, message, ``key=value``; then the traceback.

    The context is shown without the keys that every event has. Control characters are escaped, so that an event can't
    control the terminal.
    """
    header, payload = event["header"], event["payload"]
    level = header.get("level", "INFO")
    when = datetime.fromisoformat(header["timestamp"].replace("Z", "+00:00")).astimezone()
    name = f"{level:<8}"
    if in_colour:
        name = f"\x1b[{_COLOURS.get(level, '0')}m{name}\x1b[0m"
    bound = {key: value for key, value in header.get("context", {}).items() if key not in _FILLED_IN}
    message = f"{message_of(payload)}  {_named(bound)}".rstrip()
    line = f"{when:%H:%M:%S} {name} {_escape(header['channel'])}  {_escape(message)}\n"
    trace = payload.get("exc_text")
    return f"{line}{_escape(trace.rstrip())}\n" if isinstance(trace, str) else line


_FILLED_IN = frozenset(
    {"fqdn", "application", "application_version", "process", "run_id", "thread", "trace_id", "span_id"}
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _escape(text: str) -> str:
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def message_of(payload: dict[str, Any]) -> str:
    """Return a payload of any type as a line: its message, then the other fields as ``key=value``."""
    if payload.get("cls_type") == "metric":
        unit = "s" if payload.get("type") == "timer" else ""
        return f"{payload.get('metric')} = {payload.get('value')}{unit} {_named(payload.get('tags'))}".rstrip()
    hidden = _HIDDEN_IN_RUN if payload.get("cls_type") == "run" else _HIDDEN
    rest = {key: value for key, value in payload.items() if key not in hidden}
    fields = payload.get("fields")
    if isinstance(fields, dict):
        rest.update(fields)
    elif fields:
        rest["fields"] = fields
    named = _named(rest)
    return f"{payload.get('message', payload.get('cls_type', ''))}  {named}".strip()


_HIDDEN = frozenset({"cls_type", "version", "message", "fields", "exc_text", "severity", "logger", "exception"})

# Rows per stream are a table of their own, and the line begins with the time.
_HIDDEN_IN_RUN = _HIDDEN | {"streams", "started", "ended", "state", "command"}


def _named(values: Any) -> str:
    if not isinstance(values, dict):
        return "" if values is None else str(values)
    return " ".join(f"{key}={value}" for key, value in values.items())
