"""Events as lines for people, on stderr."""

from __future__ import annotations

import math
import os
import re
import sys
from datetime import datetime
from typing import Any

import msgspec

from balog.log.outputs.base import LogOutput
from balog.log.outputs.stdio import is_terminal
from balog.log.outputs.streams import write_line


class ConsoleOutput(LogOutput):
    """Lines for people on stderr, in colour on a terminal (unless ``NO_COLOR`` is set)."""

    def write(self, level: str, event: bytes) -> None:
        """Write one line, and the traceback after it if there is one."""
        in_colour = is_terminal(sys.stderr) and not os.environ.get("NO_COLOR")
        text = console_line(msgspec.json.decode(event), in_colour=in_colour)
        write_line(sys.stderr, text.encode("utf-8", "replace"))


_COLOURS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


def console_line(event: dict[str, Any], *, in_colour: bool) -> str:
    """Return a decoded event as text: local date and time, level, channel, message, ``key=value``; then the traceback.

    The context is shown without the keys that every event has. Control characters are escaped, so that an event is one
    line and can't control the terminal. Each line of the traceback begins with ``  | ``. A value with spaces, quotes or
    ``=`` is quoted as in JSON.
    """
    header, payload = event["header"], event["payload"]
    level = header.get("level", "INFO")
    when = datetime.fromisoformat(header["timestamp"].replace("Z", "+00:00")).astimezone()
    name = f"{level:<8}"
    if in_colour:
        name = f"\x1b[{_COLOURS.get(level, '0')}m{name}\x1b[0m"
    bound = {key: value for key, value in header.get("context", {}).items() if key not in _FILLED_IN}
    message = f"{message_of(payload)}  {_named(bound)}".rstrip()
    line = f"{when:%Y-%m-%d %H:%M:%S}.{when.microsecond // 1000:03} {name} "
    line += f"{_escape(header['channel'])}  {_escape(message)}\n"
    trace = payload.get("exc_text")
    if not isinstance(trace, str):
        return line
    return line + "".join(f"  | {_escape(part)}\n" for part in trace.rstrip().split("\n"))


_FILLED_IN = frozenset(
    {"fqdn", "application", "application_version", "process", "run_id", "thread", "trace_id", "span_id"}
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
"""Control characters, and invisible ones except the joiners that Persian, Hindi and emoji need."""


def _escape(text: str) -> str:
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def message_of(payload: dict[str, Any]) -> str:
    """Return a payload of any type as a line: its message, then the other fields as ``key=value``."""
    if payload.get("cls_type") == "metric":
        unit = "s" if payload.get("type") == "timer" else ""
        return (
            f"{payload.get('metric')} = {_rounded(payload.get('value'))}{unit} {_named(payload.get('tags'))}".rstrip()
        )
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


def _rounded(value: Any) -> Any:
    """Return a float with four significant digits, or as a whole number; other values as they are."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    return round(value) if 1000 <= abs(value) < 1e15 else float(f"{value:.4g}")


def _named(values: Any) -> str:
    if not isinstance(values, dict):
        return "" if values is None else _shown(values)
    return " ".join(f"{_quoted(key)}={_shown(value)}" for key, value in values.items())


def _shown(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _quoted(text: str) -> str:
    return text if text and not _UNCLEAR.search(text) else msgspec.json.encode(text).decode()


_UNCLEAR = re.compile(r"""[\s="'\\\x00-\x1f]""")
