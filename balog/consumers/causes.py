"""The cause of an event: events logged by a handler name the consumer, so that they never return to it."""

from __future__ import annotations

from balog.event import Event

__all__ = ["causes"]


def causes(event: Event) -> list[str]:
    """Return the consumers whose handlers led to an event, from ``context.caused_by.consumers``; often none."""
    cause = event.header.context.get("caused_by")
    names = cause.get("consumers") if isinstance(cause, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
