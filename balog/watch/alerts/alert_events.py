"""Alerts as events."""

from __future__ import annotations

import os
from datetime import datetime, timezone

from msgspec import Raw, json

from balog.event import Event, Level
from balog.watch.evaluation import TimedAlert

APPLICATION = "balog"

_LEVELS: dict[str, Level] = {"info": "INFO", "warning": "WARNING", "error": "ERROR", "critical": "CRITICAL"}
_LOUD = ("firing", "silenced", "acknowledged")


def as_event(timed: TimedAlert) -> Event:
    """Return the event of an alert. Its level is that of the severity while the series fires, else INFO."""
    alert = timed.payload
    return Event.new(
        f"{APPLICATION}.alert",
        Raw(json.encode(alert)),
        level=_LEVELS[alert.severity] if alert.state in _LOUD else "INFO",
        context={"fqdn": os.uname().nodename, "application": APPLICATION, "process": os.getpid()},
        timestamp=datetime.fromtimestamp(timed.time, timezone.utc),
    )
