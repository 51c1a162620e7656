"""What led to an event: whoever logs while handling one marks it, so that it never comes back to the same consumers."""

from __future__ import annotations

from balog.event import Event

__all__ = ["causes"]


def causes(event: Event) -> list[str]:
    """Give the consumers that handled what led to an event, from ``context.caused_by.consumers``; maybe none."""
    cause = event.header.context.get("caused_by")
    names = cause.get("consumers") if isinstance(cause, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
