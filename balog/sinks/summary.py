"""One line for people about an event: the headline of an alert, or the message of a log."""

from __future__ import annotations

from balog.common.errors import EventError
from balog.common.text import cut, one_line
from balog.event import Event
from balog.event import payload as payloads


def summarize(event: Event, longest: int = 1024) -> str:
    """Return one line of 1 to ``longest`` characters about an event with any payload."""
    return cut(one_line(_text(event)[: longest * 4]) or event.header.channel, longest)


def stack_trace(log: payloads.LogPayload) -> str:
    """Return a log payload's traceback in Python's format; empty if it has none."""
    text = ""
    exception = None if log.exc_text else log.exception
    while exception is not None:
        lines = [f'  File "{frame.file}", line {frame.line}, in {frame.function}' for frame in exception.frames]
        last = f"{exception.type}: {exception.message}" if exception.message else exception.type
        text = "\n".join(["Traceback (most recent call last):", *lines, last, *exception.notes]) + text
        if exception.cause is not None:
            text = _CAUSE + text
        elif exception.context is not None:
            text = _CONTEXT + text
        exception = exception.cause or exception.context
    return log.exc_text or text


_CAUSE = "\n\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\n\nDuring handling of the above exception, another exception occurred:\n\n"


def _text(event: Event) -> str:
    try:
        match payloads.read(event):
            case payloads.LogPayload(message=message, exception=exception, exc_text=exc_text):
                error = f"{exception.type}: {exception.message}" if exception else (exc_text or "")
                return message if message.strip() else error
            case payloads.RunPayload(command=command, outcome="succeeded") as run:
                return f"{command} succeeded after {run.duration:.1f} s"
            case payloads.RunPayload(command=command) as run:
                return f"{command} failed with exit code {run.exit_code} after {run.duration:.1f} s"
            case payloads.AlertPayload(monitor=monitor, state=state, reason=reason):
                return f"{monitor} {state.replace('_', ' ')}: {reason}"
            case payloads.MetricPayload(metric=metric, value=value):
                return f"{metric} {value:g}"
        own = event.payload.get("message")
    except EventError:
        own = None
    if isinstance(own, str) and own.strip():
        return own
    return f"{event.header.channel}: {event.cls_type}" if event.cls_type else event.header.channel
