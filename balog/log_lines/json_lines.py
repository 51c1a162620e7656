"""JSON lines of loggers: the Meltano SDK, python-json-logger, structlog, loguru, ECS, Google Cloud, bunyan and pino …

Libraries differ in the names of keys and in how they write a level, a time and an exception. Each key is looked for
under its known names; what no name claims becomes a field.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from balog.event import Level
from balog.log_lines.line import LogLine, exception_in, level_from_number, level_of, metric_in, time_from
from balog.singer.messages import mage_metric, metric_payload

# A name with a dot is a key of that name, or a key of the object under its first part.
_LEVELS = (
    *("level", "levelname", "log.level", "severity", "severity_text", "severityText", "lvl", "loglevel", "log_level"),
    *("logLevel", "@level", "@l"),
)
_NUMBERS = {"levelno": "python", "level_number": "python", "severity_number": "otel", "severityNumber": "otel"}
LEVEL_KEYS = frozenset({*_LEVELS, *_NUMBERS, "log", "record"})
"""Top-level keys of a record that has a level; in ``log`` and ``record`` it may be below."""

_MESSAGES = ("message", "msg", "event", "@message", "@m", "@mt", "short_message", "body", "textPayload")
_TIMES = ("ts", "timestamp", "time", "@timestamp", "@t", "asctime", "datetime", "created", "when")
_LOGGERS = ("logger_name", "logger", "loggerName", "log.logger", "name", "@logger", "@module", "SourceContext")
_STACKS = (
    *("exc_info", "exception", "exc_text", "stack_trace", "error.stack_trace", "err.stack", "stack", "traceback"),
    *("stacktrace", "@x"),
)
_ERRORS = ("error", "err")


def read_json(line: str) -> LogLine | None:
    """Parse a JSON object with a message and a level, or a message and a time; None for other lines."""
    if not line.startswith("{"):
        return None
    try:
        data = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeEncodeError):
        data = _of_python(line)
    except RecursionError:
        return None
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("text"), str) and isinstance(data.get("record"), dict):
        data = _of_loguru(data["text"], data["record"])
    counted = mage_metric(data)
    message = _pop(data, _MESSAGES, lambda value: value if isinstance(value, str) else None)
    level = _level(data, is_bunyan=message is not None and message[0] == "msg")
    when = _pop(data, _TIMES, time_from)
    if message is None or (level is None and when is None):
        return None
    logger = _pop(data, _LOGGERS, lambda value: value if isinstance(value, str) and value else None)
    metric = metric_payload(data.pop("metric_info", None)) or metric_in(message[1]) or counted
    exception, exc_text = _exception(data)
    if data.get("app_name") == "singer-sdk":  # the process is in the context
        for redundant in ("pid", "app_name"):
            data.pop(redundant, None)
    extra = data.pop("extra", None)
    fields = {key: value for key, value in data.items() if value is not None}
    if extra is not None:
        fields.update(extra if isinstance(extra, dict) else {"extra": extra})
    return LogLine(
        level=level or "INFO",
        message=message[1],
        logger=logger[1] if logger else None,
        timestamp=when[1] if when else None,
        metric=metric,
        fields=fields,
        exception=exception,
        exc_text=exc_text,
    )


def _of_python(line: str) -> Any:
    """Decode what Python's json writes and JSON does not have: NaN and Infinity, as texts, and half surrogate pairs."""
    try:
        text = json.dumps(json.loads(line, parse_constant=str), ensure_ascii=False)
        return json.loads(text.encode("utf-8", "replace"), parse_constant=str)
    except (ValueError, RecursionError):
        return None


def _find(data: dict[str, Any], name: str) -> tuple[dict[str, Any], str] | None:
    """Return the object that has a key, and the key in it."""
    if name in data:
        return data, name
    above, dot, rest = name.partition(".")
    held = data.get(above) if dot and above else None
    return (held, rest) if isinstance(held, dict) and rest in held else None


def _pop(data: dict[str, Any], names: tuple[str, ...], read: Any) -> tuple[str, Any] | None:
    """Remove the first of some keys that has a readable value, and return its name and value."""
    for name in names:
        if member := _find(data, name):
            held, key = member
            value = read(held[key])
            if value is not None:
                del held[key]
                return name, value
    return None


def _level(data: dict[str, Any], *, is_bunyan: bool) -> Level | None:
    def read(value: Any) -> Level | None:
        if isinstance(value, str):
            return level_of(value.strip())
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return level_from_number(value, "syslog" if value < 8 else "bunyan" if is_bunyan else "python")

    member = _pop(data, _LEVELS, read)
    if member is not None:
        for name in _NUMBERS:  # the same level as a number
            data.pop(name, None)
        return member[1]  # type: ignore[no-any-return]
    for name, scale in _NUMBERS.items():
        number = data.get(name)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            del data[name]
            return level_from_number(number, scale)
    return None


def _exception(data: dict[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    if isinstance(given := data.get("exception"), dict):
        return _laid_out(data.pop("exception"))
    if isinstance(given, list) and given and isinstance(given[0], dict) and "exc_type" in given[0]:
        return _of_structlog(data.pop("exception"))
    stack = _pop(data, _STACKS, lambda value: value if isinstance(value, str) and "\n" in value else None)
    if stack is None:
        return None, None
    fields: Any = next((data[name] for name in _ERRORS if isinstance(data.get(name), dict)), {})
    kind, message = fields.get("type") or fields.get("name"), fields.get("message")
    if isinstance(kind, str):
        return {"type": kind, "message": str(message or "")}, stack[1]
    return exception_in(stack[1].rstrip().split("\n")), stack[1]


def _laid_out(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the SDK's exception object as a payload's exception, and as the interpreter's text."""
    module, name = data.get("module"), str(data.get("type", "Exception"))
    kind = name if module in (None, "builtins") else f"{module}.{name}"
    message = str(data.get("message", ""))
    frames = data.get("traceback")
    return _printed(kind, message, frames if isinstance(frames, list) else [], "function")


def _of_structlog(chain: list[Any]) -> tuple[dict[str, Any], str]:
    """Return structlog's list of exceptions likewise; the first is the one that was raised."""
    raised = chain[0]
    frames = raised.get("frames")
    return _printed(
        str(raised["exc_type"]), str(raised.get("exc_value", "")), frames if isinstance(frames, list) else [], "name"
    )


def _printed(kind: str, message: str, frames: list[Any], function: str) -> tuple[dict[str, Any], str]:
    lines = ["Traceback (most recent call last):"]
    for frame in frames:
        if isinstance(frame, dict):
            lines.append(f'  File "{frame.get("filename")}", line {frame.get("lineno")}, in {frame.get(function)}')
            if source := str(frame.get("line") or "").strip():
                lines.append(f"    {source}")
    lines.append(f"{kind}: {message}" if message else kind)
    return {"type": kind, "message": message}, "\n".join(lines)


def _of_loguru(text: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return what loguru writes with ``serialize=True`` as a flat record."""
    level, time, error = record.pop("level", None), record.pop("time", None), record.pop("exception", None)
    flat = {key: value for key, value in record.items() if key not in ("elapsed", "file", "process", "thread")}
    flat["level"] = level.get("name") if isinstance(level, dict) else level
    if isinstance(level, dict) and level_of(str(level.get("name"))) is None:
        flat["level"], flat["levelno"] = None, level.get("no")
    flat["ts"] = time.get("timestamp") if isinstance(time, dict) else time
    if isinstance(error, dict):
        _, mark, trace = text.partition("Traceback (most recent call last):")
        flat["err"] = {"type": str(error.get("type")), "message": str(error.get("value"))}
        flat["err"]["stack"] = mark + trace.rstrip("\n") if mark else text
    return flat
