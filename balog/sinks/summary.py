"""What one event says, in a line for people: the headline of an alert, the message of a log."""

from __future__ import annotations

from balog import payload as payloads
from balog.errors import EventError
from balog.event import Event

__all__ = ["cut", "stack_trace", "summarize"]


def summarize(event: Event, longest: int = 1024) -> str:
    """Say what an event says, whatever its payload is: one line of 1 to ``longest`` characters."""
    text = _text(event)[: longest * 4]
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return cut(" ".join(text.split()) or event.header.channel, longest)


def cut(text: str, longest: int) -> str:
    """Give a text of at most ``longest`` characters; one that was cut ends with …"""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def stack_trace(log: payloads.LogPayload) -> str:
    """Give a log payload's traceback as Python writes one; empty when it has none."""
    found: list[str] = []
    exception = None if log.exc_text else log.exception
    while exception is not None:
        lines = [f'  File "{frame.file}", line {frame.line}, in {frame.function}' for frame in exception.frames]
        told = f"{exception.type}: {exception.message}" if exception.message else exception.type
        found.append("\n".join(["Traceback (most recent call last):", *lines, told]))
        exception = exception.cause
    joint = "\n\nThe above exception was the direct cause of the following exception:\n\n"
    return log.exc_text or joint.join(reversed(found))


def _text(event: Event) -> str:
    try:
        match payloads.read(event):
            case payloads.LogPayload(message=message, exception=exception, exc_text=exc_text):
                told = f"{exception.type}: {exception.message}" if exception else (exc_text or "")
                return message if message.strip() else told
            case payloads.RunPayload(command=command, outcome="succeeded") as run:
                return f"{command} succeeded after {run.duration:.1f} s"
            case payloads.RunPayload(command=command) as run:
                return f"{command} failed with exit code {run.exit_code} after {run.duration:.1f} s"
            case payloads.MetricPayload(metric=metric, value=value):
                return f"{metric} {value:g}"
        said = event.payload.get("message")
    except EventError:
        said = None
    if isinstance(said, str) and said.strip():
        return said
    return f"{event.header.channel}: {event.cls_type}" if event.cls_type else event.header.channel
