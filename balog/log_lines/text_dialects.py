"""Lines of text of loggers: Python's ``logging`` in its usual formats, loguru, Flask, Celery, absl, logfmt and others.

A pattern is matched at one place, each of its parts is bounded, and the parts differ in their characters: a line is
read in time linear in its length. The order counts: a pattern that says more comes first. Where a format does not
part the logger's name from the message, as in ``[ERROR] name: message``, the name stays in the message.
"""

from __future__ import annotations

import re
from typing import Any

from balog.common.errors import redact_error
from balog.event import Level, parse_level
from balog.log_lines.line import LogLine, exception_in, level_of, metric_in, time_from, time_in

_UPPER = r"(?P<level>[A-Z]{3,13}|Level \d{1,3})"
_ANY = r"(?P<level>[A-Za-z]{3,13}|Level \d{1,3})"
_MESSAGE = r"(?P<message>.*)"


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern + _MESSAGE, re.DOTALL) for pattern in patterns)


_AFTER_TIME = _compiled(
    rf" - (?P<logger>\S{{1,200}}) - {_ANY} - ",  # the cookbook's
    rf"\s*\| {_UPPER}\s*\| (?P<logger>[^\s:|]{{1,200}}):(?P<function>[^\s:|]{{1,200}}):(?P<line>\d{{1,9}}) - ",
    rf"\s*\| {_UPPER}\s*\| (?P<logger>[^\s|]{{0,200}})\s*\| ",  # the Meltano SDK
    rf": {_UPPER}/(?P<process>[^\]\s]{{1,100}})\] ",  # Celery
    rf"\] {_UPPER} in (?P<logger>[^\s:]{{1,200}}): ",  # Flask
    rf"\] \[\d{{1,10}}\] \[{_UPPER}\] ",  # gunicorn
    rf"\] \{{(?P<location>[^}}\s]{{1,200}})\}} {_UPPER} - ",  # Airflow
    rf"\]? \[{_ANY} {{0,10}}\] ",  # structlog's console
    rf" \[(?P<thread>[^\]]{{1,100}})\] {_UPPER} {{1,5}}(?P<logger>[\w$.]{{1,200}}) - ",  # logback
    rf" \[(?P<logger>[^\]\s]{{1,200}})\] {_UPPER}: ",  # Scrapy
    rf":{_UPPER}:(?P<logger>[^:\s]{{1,200}}):",
    rf" - {_UPPER} - ",
    rf" ?\| ?{_UPPER} {{0,8}}\| ?",
    rf"[,:\t]{_UPPER}[,:\t] ?",
    rf"\]? {{1,3}}{_UPPER}(?:: ?| {{1,8}})",
    rf" (?P<logger>(?=[^\s:]{{0,200}}[._-]|root)[^\s:]{{1,200}}):? {_UPPER}:? {{1,8}}",
    rf" \S{{1,100}} (?P<logger>[^\s\[]{{1,200}})\[\d{{1,10}}\] {_UPPER} ",  # coloredlogs
)
_TIME_OF_DAY = re.compile(r"\[?(?:\d\d/\d\d/\d\d,? )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
_GLOG = re.compile(r"([DIWEF])\d{4} \d\d:\d\d:\d\d\.\d{6} {1,8}\d{1,20} ([^\s\]]{1,200})\] (.*)", re.DOTALL)
_GLOG_LEVELS: dict[str, Level] = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}

_FROM_INITIAL = _compiled(
    rf"{_UPPER}:(?P<logger>[^:\s]{{1,200}}):(?!//)",  # logging.basicConfig
    rf"{_UPPER}:\s{{0,10}}",  # uvicorn
    rf"{_ANY}:\s{{1,10}}",  # winston, click
    rf"(?P<logger>\S{{1,200}}) - {_UPPER} - ",
)
_SINGER_PYTHON = re.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|WARN|FATAL(?! ERROR: )|TRACE|NOTICE|SUCCESS) (?P<message>.*)",
    re.DOTALL,
)
_ARGPARSE = re.compile(r"[\w.-]{1,100}: (?P<level>error|warning): (?P<message>.*)", re.DOTALL)
_BRACKETED = _compiled(rf"\[{_ANY} {{0,10}}\]:? ", rf"\[{_UPPER}/(?P<process>[^\]\s]{{1,100}})\] ")
_WARNING = re.compile(r"(?P<location>.{1,500}?:\d{1,9}): (?P<message>\w{0,100}Warning: .*)", re.DOTALL)
_RICH = re.compile(r" {11,40}(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) {1,8}(?P<message>.*)", re.DOTALL)
_MAX_RICH = 300
_RICH_PLACE = re.compile(r" {2,}[\w.]{1,100}\.py:\d{1,9}$")


def read_text(line: str) -> LogLine | None:
    """Parse a line that begins a record in a known format; None if no format matches."""
    first = line[:1]
    if first.isdigit() or (first == "[" and line[1:2].isdigit()):
        return _after_time(line)
    if first == "[":
        return _first(_BRACKETED, line)
    if first == " ":
        return _made(_RICH.match(line), has_place=True)
    if match := _GLOG.match(line):
        return _line(match[3], _GLOG_LEVELS[match[1]], fields={"location": match[2]})
    return (
        _made(_SINGER_PYTHON.match(line))
        or _first(_FROM_INITIAL, line)
        or _made(_ARGPARSE.match(line))
        or _made(_WARNING.match(line) if "Warning: " in line else None, level="WARNING", takes_traceback=False)
        or _logfmt(line)
    )


def _after_time(line: str) -> LogLine | None:
    at = line.startswith("[")
    when, end = time_in(line, at)
    is_short = end == at
    if is_short:
        match = _TIME_OF_DAY.match(line)
        if match is None:
            return None
        end = match.end()
    for pattern in _AFTER_TIME:
        record = _made(pattern.match(line, end), timestamp=when, has_place=is_short and at)
        if record is not None:
            return record
    return None


def _first(patterns: tuple[re.Pattern[str], ...], line: str) -> LogLine | None:
    for pattern in patterns:
        record = _made(pattern.match(line))
        if record is not None:
            return record
    return None


def _made(
    match: re.Match[str] | None, *, level: Level | None = None, has_place: bool = False, **parts: Any
) -> LogLine | None:
    """Make a record of a match; None if its level is unknown.

    Args:
        match: of a pattern above.
        level: that of all records of this pattern.
        has_place: cut rich's file and line off the end.
        parts: further fields of the record.
    """
    if match is None:
        return None
    fields: dict[str, Any] = {name: value for name, value in match.groupdict().items() if value is not None}
    message, logger = fields.pop("message"), fields.pop("logger", None)
    if level is None:
        name = fields.pop("level")
        level = level_of(name) if name.isupper() or name[-1].isdigit() else parse_level(name)
        if level is None:
            return None
    if has_place:
        message = _RICH_PLACE.sub("", message) if len(message) < _MAX_RICH else message
    if "line" in fields:  # loguru
        fields["line"] = int(fields["line"])
    return _line(message, level, logger=logger or None, fields=fields, **parts)


def _line(message: str, level: Level, **parts: Any) -> LogLine:
    return LogLine(level=level, message=message, metric=metric_in(message), **parts)


_PAIR = re.compile(
    r'\s{0,10}(?:([A-Za-z_@][\w.@-]{0,100})=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))|([^\s"=]{1,200}))(?=\s|$)', re.DOTALL
)
_MAX_PAIRS = 200
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_LOGFMT_LEVELS = ("level", "lvl", "severity", "at", "levelname")
_LOGFMT_MESSAGES = ("msg", "message", "event")
_LOGFMT_TIMES = ("time", "ts", "timestamp", "when", "asctime", "t")
_LOGFMT_LOGGERS = ("logger", "name", "logger_name")
_LOGFMT_STACKS = ("exc_info", "exception", "stack", "stacktrace")


def _logfmt(line: str) -> LogLine | None:
    """Read ``level=error msg="it is so" key=value flag``: pairs, with a level and a message; a flag is true.

    With other words, the message is the whole line, because they may belong together, as ``password: …`` does.
    """
    pairs: dict[str, Any] = {}
    words: dict[str, Any] = {}
    at, end = 0, len(line.rstrip())
    while at < end:
        match = _PAIR.match(line, at)
        if match is None or len(pairs) + len(words) >= _MAX_PAIRS or (match[4] and not pairs):
            return None
        name, quoted, plain, word = match.groups()
        if word:
            words[word] = True
        elif quoted is None:
            pairs[name] = plain
        else:
            pairs[name] = _ESCAPE.sub(lambda token: _ESCAPES.get(token[1], token[1]), quoted)
        at = match.end()
    by_level = next(((name, level) for name in _LOGFMT_LEVELS if (level := level_of(pairs.get(name, "")))), None)
    by_message = next((name for name in _LOGFMT_MESSAGES if name in pairs), None)
    if by_level is None or by_message is None:
        return None
    level, message = by_level[1], pairs.pop(by_message)
    del pairs[by_level[0]]
    if words and not (all(map(str.isidentifier, words)) and redact_error(line) == line):
        message, words = line.strip(), {}
    when = next((name for name in _LOGFMT_TIMES if time_from(pairs.get(name))), None)
    logger = next((name for name in _LOGFMT_LOGGERS if pairs.get(name)), None)
    stack = next((name for name in _LOGFMT_STACKS if "\n" in pairs.get(name, "")), None)
    exc_text = pairs.pop(stack) if stack else None
    return _line(
        message,
        level,
        logger=pairs.pop(logger) if logger else None,
        timestamp=time_from(pairs.pop(when)) if when else None,
        exception=exception_in(exc_text.rstrip().split("\n")) if exc_text else None,
        exc_text=exc_text,
        fields=words | pairs,
    )
