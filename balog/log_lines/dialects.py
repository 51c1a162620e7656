"""The lines of taps' stderr: Singer's own dialects, those of logging libraries, and patterns that users add."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import tzinfo

import msgspec

from balog.common.errors import EventError, complain
from balog.common.plugins import load_named
from balog.event import decode, parse_level
from balog.log_lines.json_lines import read_json
from balog.log_lines.line import LogLine, metric_in, time_in
from balog.log_lines.patterns import Pattern
from balog.log_lines.text_dialects import read_text


def read_line(line: str, zone: tzinfo | None = None, patterns: Sequence[Pattern] = ()) -> LogLine | None:
    """Parse a line that begins a log record; None if no dialect matches (a continuation, or plain text).

    Colours of a terminal are left out of a line that a dialect knows.

    Args:
        line: without its newline.
        zone: the zone of times that don't name theirs; None is this machine's.
        patterns: of the user and of plug-ins; they are tried before the dialects.
    """
    line = without_colours(line)
    for dialect in (_own_event, *patterns, *_DIALECTS):
        log_line = dialect(line)
        if log_line is not None:
            log_line.use_utc(zone)
            return log_line
    return None


def load_dialects(names: Sequence[str], path: str) -> list[Pattern]:
    """Return the dialects of installed packages, by the names of their entry points in the group ``balog.dialects``.

    A dialect that raises for a line, or returns anything but a valid ``LogLine`` or None, is reported once, and the
    line is left to the other dialects.

    Args:
        path: where the names are in the config.

    Raises:
        ConfigError: no installed package has a dialect of a name.
        BalogError: a dialect cannot be imported.
    """
    places = (f"{path}[{number}]" for number in range(len(names)))
    return [_guarded(name, load_named("balog.dialects", name, item_path)) for name, item_path in zip(names, places)]


def _guarded(name: str, dialect: Pattern) -> Pattern:
    is_reported = False

    def read(line: str) -> LogLine | None:
        nonlocal is_reported
        try:
            log_line = dialect(line)
            return None if log_line is None else _checked(log_line)
        except (Exception, SystemExit) as error:  # a plug-in may raise anything
            if not is_reported:
                is_reported = True
                complain(f"dialect {name!r} failed, now and maybe again: {type(error).__name__}: {error}")
            return None

    return read


def _checked(log_line: object) -> LogLine:
    if not isinstance(log_line, LogLine):
        raise TypeError(f"expected a LogLine or None, not {type(log_line).__name__}")
    return msgspec.convert(msgspec.structs.asdict(log_line), LogLine)


_COLOUR = re.compile(r"\x1b\[[0-9;]{0,30}m")


def without_colours(line: str) -> str:
    """Return a line without a terminal's colours."""
    return _COLOUR.sub("", line) if "\x1b" in line else line


_MAGE = re.compile(r"[A-Z]+ \[\d{4}-\d\d-\d\dT[\d:.]+\] (\{.*\})")


def _mage(line: str) -> LogLine | None:
    """``LEVEL [time] {"message": …, "type": "LOG"}``, what a source of Mage prints when it doesn't write to stdout."""
    match = _MAGE.fullmatch(line)
    return read_json(match[1]) if match else None


_PIPELINEWISE = re.compile(r"time=(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) name=(\S+) level=([A-Z]+) message=(.*)", re.DOTALL)


def _pipelinewise(line: str) -> LogLine | None:
    """``time=… name=… level=… message=…``, of pipelinewise-singer-python's ``logging.conf``; the time names no zone."""
    match = _PIPELINEWISE.match(line)
    level = parse_level(match[3]) if match else None
    if match is None or level is None:
        return None
    when, _ = time_in(match[1])
    return LogLine(level=level, message=match[4], logger=match[2], timestamp=when, metric=metric_in(match[4]))


def _own_event(line: str) -> LogLine | None:
    """Parse an event, printed by a tap that logs through balog."""
    if not (line.startswith("{") and '"header"' in line):
        return None
    try:
        return LogLine(event=decode(line))
    except (EventError, UnicodeEncodeError):
        return None


def _bare_metric(line: str) -> LogLine | None:
    """``METRIC: {json}`` and nothing before it: Meltano has the taps that it runs print the bare message."""
    metric = metric_in(line)
    return LogLine(message=line, metric=metric) if metric is not None else None


_DIALECTS: tuple[Callable[[str], LogLine | None], ...] = (
    read_json,
    _pipelinewise,
    _mage,
    read_text,
    _bare_metric,
)
