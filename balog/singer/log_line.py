"""The parsed form of a line of a tap's stderr, and the metrics in such lines."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from balog.event import Event, Level
from balog.singer.messages import metric_payload


class LogLine(Struct, kw_only=True):
    """One parsed line of any dialect.

    ``event`` is set, and all else unset, when the line is a whole event already. ``read_line`` gives times in UTC.
    ``is_uncaught`` marks a traceback that no logger wrote: the interpreter's own. ``takes_traceback`` is False for
    lines that never have one of their own, as those of Python's ``warnings``.
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
    is_uncaught: bool = False
    takes_traceback: bool = True


_MAX_LITERAL = 10_000
_METRIC = re.compile(r"\s*(?:[A-Z]{4,8} )?METRIC:?\s*")


def metric_in(message: str) -> dict[str, Any] | None:
    """Return the metric payload in a message, or None.

    Forms: ``METRIC: {…}`` as JSON (singer-python, Meltano SDK), ``INFO METRIC: {…}`` as JSON or as Python shows a dict
    (older SDKs), ``METRIC Point(…)`` (Stitch).
    """
    match = _METRIC.match(message)
    if match is None:
        return None
    text = message[match.end() :].strip()
    if text.startswith("Point("):
        return _metric_in_point(text)
    try:
        point = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        if not text.startswith("{'"):
            return None
        point = _literal(text)
        try:
            msgspec.json.encode(point)  # Python can show what JSON has no word for
        except (TypeError, ValueError, RecursionError):
            return None
    payload = metric_payload(point)
    return payload if payload is None or math.isfinite(payload["value"]) else None


def _literal(text: str) -> Any:
    """Return the value of a Python literal; None when it is not one, or too long."""
    if len(text) > _MAX_LITERAL:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)  # constants only
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, OverflowError):
        return None


def _metric_in_point(text: str) -> dict[str, Any] | None:
    """Parse the repr of singer-python's ``Point``: ``Point(metric_type='timer', metric='x', value=0.1, …)``."""
    if len(text) > _MAX_LITERAL:
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


_EXCEPTION_LINE = re.compile(r"(?:  \| )?(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)
_INDENTED = (" ", "\t")


def exception_in(trace: Sequence[str]) -> dict[str, Any] | None:
    """Return type and message from a traceback's lines: the last unindented line, and the following ones."""
    for index in range(len(trace) - 1, 0, -1):
        match = _EXCEPTION_LINE.match(trace[index])
        before = trace[index - 1] or (trace[index - 2] if index > 1 else "")  # loguru leaves a line empty
        if match and before.startswith(_INDENTED):
            message = "\n".join([match["message"] or "", *trace[index + 1 :]])
            return {"type": match["type"], "message": message.rstrip()}
    return None
