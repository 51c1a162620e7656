"""The lines of taps' stderr: singer-python's, PipelineWise's, Stitch's, Mage's, the Meltano SDK's two, balog's own."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo
from typing import Any

import msgspec
from msgspec import Struct, field

from balog.errors import EventError
from balog.event import Event, Level, decode, parse_level
from balog.singer.messages import mage_metric, metric_payload

__all__ = ["LogLine", "read_line"]


class LogLine(Struct, kw_only=True):
    """What one line says, whichever dialect it was in.

    ``event`` is set, and all else unset, when the line is a whole event already. ``read_line`` gives times in UTC.
    """

    level: Level = "INFO"
    message: str = ""
    logger: str | None = None
    timestamp: datetime | None = None
    metric: dict[str, Any] | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    exception: dict[str, Any] | None = None
    exc_text: str | None = None
    event: Event | None = None


def read_line(line: str, zone: tzinfo | None = None) -> LogLine | None:
    """Read a line that begins a log record; None when no dialect knows it (a continuation, or plain text).

    Args:
        zone: the zone of times that don't name theirs; None is this machine's.
    """
    for dialect in _DIALECTS:
        found = dialect(line)
        if found is not None:
            if found.timestamp is not None and found.timestamp.tzinfo is None:
                found.timestamp = _in_utc(found.timestamp, zone)
            return found
    return None


def _in_utc(local: datetime, zone: tzinfo | None) -> datetime | None:
    try:
        return (local if zone is None else local.replace(tzinfo=zone)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def _metric_in(message: str) -> dict[str, Any] | None:
    """Give the metric payload in ``METRIC: {…}`` (singer-python, Meltano SDK) or ``METRIC Point(…)`` (Stitch)."""
    if not message.startswith("METRIC"):
        return None
    text = message[6:].lstrip(": ")
    if text.startswith("Point("):
        return _metric_in_point(text)
    try:
        point = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    return metric_payload(point)


_MAX_POINT = 10_000


def _metric_in_point(text: str) -> dict[str, Any] | None:
    """Read singer-python's ``Point`` as Python shows it: ``Point(metric_type='timer', metric='x', value=0.1, …)``."""
    if len(text) > _MAX_POINT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is no Python that Python itself would show
            call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            return None
        point = {str(item.arg): ast.literal_eval(item.value) for item in call.keywords}  # constants only
        metric = {"type": point.get("metric_type"), "metric": point.get("metric"), "value": point.get("value")}
        payload = metric_payload({**metric, "tags": point.get("tags") or {}})
        msgspec.json.encode(payload)  # Python can show what JSON has no word for
        return payload if payload and math.isfinite(payload["value"]) else None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, OverflowError):
        return None


_STITCH = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})Z\s+([\w-]+) - ([A-Z]+) (.*)", re.DOTALL)


def _stitch(line: str) -> LogLine | None:
    """``asctimeZ    tap - LEVEL message``, as Stitch shows what taps print; the time is UTC."""
    match = _STITCH.match(line)
    level = parse_level(match[3]) if match else None
    if match is None or level is None:
        return None
    try:
        when = datetime.fromisoformat(match[1].replace(",", ".")).replace(tzinfo=timezone.utc)
    except ValueError:
        when = None
    return LogLine(level=level, message=match[4], logger=match[2], timestamp=when, metric=_metric_in(match[4]))


_MAGE = re.compile(r"[A-Z]+ \[\d{4}-\d\d-\d\dT[\d:.]+\] (\{.*\})")


def _mage(line: str) -> LogLine | None:
    """``LEVEL [time] {"message": …, "type": "LOG"}``, what a source of Mage prints when it doesn't write to stdout."""
    match = _MAGE.fullmatch(line)
    return _sdk_json(match[1]) if match else None


_SINGER_PYTHON = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (.*)", re.DOTALL)


def _singer_python(line: str) -> LogLine | None:
    """``LEVEL message``, the format of singer-python's ``logging.conf``."""
    match = _SINGER_PYTHON.match(line)
    if match is None:
        return None
    return LogLine(level=parse_level(match[1]) or "INFO", message=match[2], metric=_metric_in(match[2]))


_SDK_TEXT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\s*\| ([A-Z]+)\s*\| (\S*)\s*\| (.*)", re.DOTALL)


def _sdk_text(line: str) -> LogLine | None:
    """``asctime | LEVEL | logger | message``, the Meltano SDK's default format; the time names no zone."""
    match = _SDK_TEXT.match(line)
    level = parse_level(match[2]) if match else None
    if match is None or level is None:
        return None
    try:
        when = datetime.fromisoformat(match[1].replace(",", "."))
    except ValueError:
        when = None
    return LogLine(level=level, message=match[4], logger=match[3] or None, timestamp=when, metric=_metric_in(match[4]))


_PIPELINEWISE = re.compile(r"time=(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) name=(\S+) level=([A-Z]+) message=(.*)", re.DOTALL)


def _pipelinewise(line: str) -> LogLine | None:
    """``time=… name=… level=… message=…``, of pipelinewise-singer-python's ``logging.conf``; the time names no zone."""
    match = _PIPELINEWISE.match(line)
    level = parse_level(match[3]) if match else None
    if match is None or level is None:
        return None
    try:
        when = datetime.fromisoformat(match[1])
    except ValueError:
        when = None
    return LogLine(level=level, message=match[4], logger=match[2], timestamp=when, metric=_metric_in(match[4]))


def _own_event(line: str) -> LogLine | None:
    """A line that is an event already, printed by a tap that logs through balog."""
    if not (line.startswith("{") and '"header"' in line):
        return None
    try:
        return LogLine(event=decode(line))
    except (EventError, UnicodeEncodeError):
        return None


def _sdk_json(line: str) -> LogLine | None:
    """One JSON object with ``level``, ``message``, ``logger_name``, ``ts``: the Meltano SDK's structured format."""
    if not line.startswith("{"):
        return None
    try:
        data = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    counted = mage_metric(data)
    message, level = data.pop("message", None), data.pop("level", None)
    if not isinstance(message, str) or not isinstance(level, str) or parse_level(level) is None:
        return None
    logger, when = data.pop("logger_name", None), data.pop("ts", None)
    metric = metric_payload(data.pop("metric_info", None)) or _metric_in(message) or counted
    exception, extra = data.pop("exception", None), data.pop("extra", None)
    for redundant in ("pid", "app_name"):  # the process is in the context, the name is always "singer-sdk"
        data.pop(redundant, None)
    fields = {key: value for key, value in data.items() if value is not None}
    if isinstance(extra, dict):
        fields.update(extra)
    record = LogLine(
        level=parse_level(level) or "INFO",
        message=message,
        logger=logger if isinstance(logger, str) else None,
        timestamp=_from_epoch(when),
        metric=metric,
        fields=fields,
    )
    if isinstance(exception, dict):
        record.exception, record.exc_text = _sdk_exception(exception)
    return record


def _from_epoch(seconds: Any) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def _sdk_exception(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Give the SDK's exception object as ours, and laid out as the interpreter would print it."""
    module, name = data.get("module"), str(data.get("type", "Exception"))
    kind = name if module in (None, "builtins") else f"{module}.{name}"
    message = str(data.get("message", ""))
    lines = ["Traceback (most recent call last):"]
    frames = data.get("traceback")
    for frame in frames if isinstance(frames, list) else []:
        if isinstance(frame, dict):
            lines.append(f'  File "{frame.get("filename")}", line {frame.get("lineno")}, in {frame.get("function")}')
            if source := str(frame.get("line") or "").strip():
                lines.append(f"    {source}")
    lines.append(f"{kind}: {message}" if message else kind)
    return {"type": kind, "message": message}, "\n".join(lines)


def _bare_metric(line: str) -> LogLine | None:
    """``METRIC: {json}`` and nothing before it: Meltano has the taps that it runs print the bare message."""
    metric = _metric_in(line)
    return LogLine(message=line, metric=metric) if metric is not None else None


_DIALECTS: tuple[Callable[[str], LogLine | None], ...] = (
    _own_event,
    _sdk_json,
    _sdk_text,
    _pipelinewise,
    _stitch,
    _mage,
    _singer_python,
    _bare_metric,
)
