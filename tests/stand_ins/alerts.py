"""Alerts as a watcher sends them."""

from typing import Any

from balog.event import Event, encode
from balog.sinks import Delivery

__all__ = ["alert_delivery", "alert_event", "alert_life"]


def alert_event(number: int = 1, state: str = "firing", **changes: Any) -> Event:
    """An alert of a monitor; ``changes`` are fields of its payload, or of the header."""
    header = {name: changes.pop(name) for name in ("timestamp", "context", "level", "id") if name in changes}
    payload = {
        "cls_type": "alert",
        "version": "1.0.0",
        "monitor": f"m{number}",
        "kind": "freshness",
        "state": state,
        "previous": "firing" if state == "resolved" else "ok",
        "key": f"m{number}|tap-shop|orders",
        "incident": "tap-shop@2026-11-24T06:00:00Z",
        "severity": "error",
        "labels": {"pipeline": "tap-shop", "stream": "orders"},
        "value": 4500,
        "expected": {"low": None, "high": 3600},
        "reason": f"No success for {number} h.",
        "since": "2026-11-24T08:00:00Z" if state == "resolved" else "2026-11-24T06:00:00Z",
        "started": "2026-11-24T06:00:00Z",
        "evidence": {"runs": ["r1"], "link": "https://runs.example.com/r1"},
        "sequence": 2 if state == "resolved" else 1,
    }
    return Event.new("balog.alert", {**payload, **changes}, **{"level": "ERROR", **header})


def alert_delivery(number: int = 1, state: str = "firing", **changes: Any) -> Delivery:
    event = alert_event(number, state, **changes)
    return Delivery(event, encode(event))


def alert_life(number: int = 1) -> list[Delivery]:
    """An alert that fires and resolves."""
    return [alert_delivery(number), alert_delivery(number, "resolved")]
