"""Formats of log lines that users describe, for lines that no built-in dialect knows."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from balog.common.errors import ConfigError
from balog.event import Level
from balog.log_lines.line import LogLine, level_of, metric_in, time_in

Pattern = Callable[[str], LogLine | None]
"""Reads a line; None when it does not fit."""

_MAX_VALUE = 300  # characters of a part; the message has no limit


class LogPattern(Struct, forbid_unknown_fields=True, kw_only=True):
    """``{"format": "{time} <{level}> {logger}: {message}"}``: one kind of log line, by its named parts."""

    format: Annotated[
        str,
        Meta(
            description="The line, with its parts in braces: {level} and {message}, and {time}, {logger} or any name "
            "of a field. A part ends where the text after it begins.",
            min_length=1,
            max_length=500,
        ),
    ]
    levels: Annotated[
        dict[Annotated[str, Meta(min_length=1, max_length=50)], Level],
        Meta(description="What the levels mean that balog does not know, as they stand in the line.", max_length=100),
    ] = {}
    time_format: (
        Annotated[
            str,
            Meta(
                description="How {time} is written, as Python's strptime has it; ISO 8601 if none.",
                min_length=1,
                max_length=100,
            ),
        ]
        | None
    ) = None


def compile_patterns(patterns: list[LogPattern], path: str) -> list[Pattern]:
    """Return a function for each pattern.

    A line is searched from left to right for each literal text, once: the time is linear in the line's length.

    Args:
        patterns: the user's.
        path: where they stand in the config.

    Raises:
        ConfigError: a format cannot be read.
    """
    functions = []
    for index, pattern in enumerate(patterns):
        try:
            functions.append(_compile(pattern))
        except ValueError as error:
            raise ConfigError(str(error), path=f"{path}[{index}].format") from None
    return functions


def _compile(pattern: LogPattern) -> Pattern:
    start, parts = _parts(pattern.format)
    levels, time_format = pattern.levels, pattern.time_format

    def read(line: str) -> LogLine | None:
        values = _values(line, start, parts)
        level = None if values is None else levels.get(values["level"]) or level_of(values["level"])
        if values is None or level is None:
            return None
        del values["level"]
        message, time = values.pop("message"), values.pop("time", "")
        return LogLine(
            level=level,
            message=message,
            logger=values.pop("logger", "") or None,
            timestamp=_time(time, time_format) if time else None,
            metric=metric_in(message),
            fields=dict(values),
        )

    return read


def _parts(format: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the text before the first part, and each part's name with the text after it."""
    try:
        pieces = list(string.Formatter().parse(format))
    except ValueError as error:
        raise ValueError(f"the braces do not fit: {error}") from None
    start = ""
    parts: list[tuple[str, str]] = []
    for literal, name, spec, conversion in pieces:
        if parts:
            before, after = parts[-1]
            parts[-1] = before, after + literal
        else:
            start += literal
        if name is None:
            continue
        names = [known for known, _ in parts]
        if spec or conversion or not re.fullmatch(r"[A-Za-z_]\w{0,99}", name):
            raise ValueError(f"{{{name}}} is not a name; write {{level}}, or {{{{ for a brace")
        if name in names:
            raise ValueError(f"{{{name}}} is there twice")
        if parts and not parts[-1][1]:
            raise ValueError(f"there is no text between {{{names[-1]}}} and {{{name}}}, so nothing ends the first")
        parts.append((name, ""))
    names = [known for known, _ in parts]
    for needed in ("level", "message"):
        if needed not in names:
            raise ValueError(f"{{{needed}}} is missing")
    return start, parts


def _values(line: str, start: str, parts: list[tuple[str, str]]) -> dict[str, str] | None:
    if not line.startswith(start):
        return None
    at, values = len(start), {}
    for index, (name, after) in enumerate(parts):
        is_last = index == len(parts) - 1
        if is_last and after and not line.endswith(after):
            return None
        end = line.find(after, at) if not is_last else len(line) - len(after)
        if end < at or (end - at > _MAX_VALUE and name != "message"):
            return None
        values[name] = line[at:end].strip()
        at = end + len(after)
        if after.endswith(" "):
            while at < len(line) and line[at] == " ":  # padding
                at += 1
    return values


def _time(text: str, format: str | None) -> datetime | None:
    if format is None:
        return time_in(text)[0]
    try:
        return datetime.strptime(text, format)
    except (ValueError, OverflowError, re.error):
        return None
