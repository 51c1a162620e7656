"""Alerts as events, and an example for previews."""

from __future__ import annotations

import os
from datetime import datetime, timezone

from msgspec import Raw, json

from balog.event import Event, Level
from balog.event.payload import AlertEvidence, AlertPayload, AlertState
from balog.watch.evaluation import TimedAlert
from balog.watch.series import key_of

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


def sample_alert(state: AlertState = "firing") -> Event:
    """Return the event of an alert about a late pipeline."""
    is_over = state == "resolved"
    payload = AlertPayload(
        monitor="orders-arrive",
        kind="freshness",
        state=state,
        previous="ok" if state in ("firing", "no_data") else "firing",
        key=key_of("orders-arrive", "tap-shop", "", ()),
        incident="tap-shop@2026-11-24T06:00:00Z",
        incident_firing=0 if is_over else 1,
        severity="error",
        labels={"pipeline": "tap-shop"},
        reason="A run succeeded; the next success is due by 2026-11-24 09:15:00Z."
        if is_over
        else "No run has succeeded since 2026-11-24 04:45:00Z; one was due within 1 h 15 min.",
        since="2026-11-24T08:00:00Z" if is_over else "2026-11-24T06:00:00Z",
        started="2026-11-24T06:00:00Z",
        evidence=AlertEvidence(runs=["run-1842"], link="https://example.com/runs/1842"),
        sequence=2 if is_over else 1,
    )
    return Event.new("balog.alert", payload, level="INFO" if is_over else "ERROR", context={"application": APPLICATION})
