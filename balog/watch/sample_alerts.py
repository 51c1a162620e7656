"""An example of an alert, for previews."""

from __future__ import annotations

from balog.event import Event
from balog.payload import AlertEvidence, AlertPayload, AlertState, ExpectedBand


def sample_alert(state: AlertState = "firing") -> Event:
    """Return the event of an alert about a late pipeline."""
    is_over = state == "resolved"
    payload = AlertPayload(
        monitor="orders-arrive",
        kind="freshness",
        state=state,
        previous="ok" if state in ("firing", "no_data") else "firing",
        key="orders-arrive|tap-shop|orders",
        incident="tap-shop@2026-11-24T06:00:00Z",
        severity="error",
        labels={"pipeline": "tap-shop", "stream": "orders"},
        value=4500.0,
        expected=ExpectedBand(high=3600.0),
        reason="The last success was 75 minutes ago; one is due every hour.",
        since="2026-11-24T08:00:00Z" if is_over else "2026-11-24T06:00:00Z",
        started="2026-11-24T06:00:00Z",
        evidence=AlertEvidence(runs=["run-1842"], link="https://example.com/runs/1842"),
        sequence=2 if is_over else 1,
    )
    return Event.new("balog.alert", payload, level="INFO" if is_over else "ERROR", context={"application": "balog"})
