"""What went wrong: errors that were logged, and runs that failed. The pattern: one event, one call."""

from __future__ import annotations

from typing import Any

from balog import Event
from balog.consumers import consumer_config
from balog.event.payload import LogPayload, RunPayload, read


@consumer_config(topic="singer-events", where="level >= 'ERROR' OR cls_type = 'run'")
def print_failure(settings: dict[str, Any], event: Event) -> None:
    """Print an event of level ERROR or CRITICAL, and the report of a run whose outcome is failed."""
    payload = read(event)
    if isinstance(payload, RunPayload):
        if payload.outcome == "failed":
            print(
                f"FAILED   {payload.command} ended with exit code {payload.exit_code}"
                f" after {payload.duration:,.1f} s and {payload.records:,} records"
            )
    elif event.level in {"ERROR", "CRITICAL"}:
        application = event.header.context.get("application", "?")
        print(f"{event.level:<8} {event.header.timestamp:%H:%M:%S}  {application}: {_what(event, payload)}")


def _what(event: Event, payload: object) -> str:
    """Say it in one line: the message, and the last line of a traceback, which names the exception."""
    if not isinstance(payload, LogPayload):
        return event.header.channel
    message = payload.message.strip().partition("\n")[0]
    if payload.exc_text:
        return f"{message}: {payload.exc_text.strip().splitlines()[-1]}"
    if payload.exception:
        return f"{message}: {payload.exception.type}: {payload.exception.message}"
    return message
