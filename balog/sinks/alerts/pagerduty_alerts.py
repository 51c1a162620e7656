"""The request of an alert to PagerDuty's Events API v2: the key of its series deduplicates."""

from __future__ import annotations

import hashlib
from typing import Any

from balog.common.text import cut
from balog.event import Event
from balog.event.payload import AlertPayload
from balog.sinks.alerts.alert_text import short_line
from balog.sinks.summary import summarize

_ACTIONS = {"firing": "trigger", "acknowledged": "acknowledge", "resolved": "resolve"}
_MAX_KEY = 255
_MAX_SUMMARY = 1024
_MAX_TEXT = 255
_MAX_URL = 2000


def alert_action(alert: AlertPayload) -> str | None:
    """Return the action of an alert's state; None if the state changes nothing."""
    return _ACTIONS.get(alert.state)


def alert_request(alert: AlertPayload, event: Event, action: str) -> dict[str, Any]:
    """Return the request of an alert, without the routing key.

    Its ``group`` is the alert's incident, by which a service of PagerDuty can group alerts.
    """
    key = alert.key
    if not 0 < len(key) <= _MAX_KEY:
        key = "balog/" + hashlib.sha256(key.encode()).hexdigest()
    request: dict[str, Any] = {"event_action": action, "dedup_key": key}
    if action != "trigger":
        return request
    pipeline = alert.labels.get("pipeline", "")
    band = alert.expected
    payload = {
        "summary": summarize(event, _MAX_SUMMARY),
        "source": _text(pipeline or alert.monitor) or "balog",
        "severity": alert.severity,
        "timestamp": event.header.timestamp.isoformat(timespec="microseconds"),
        "component": _text(alert.labels.get("stream") or pipeline or alert.monitor),
        "group": _text(alert.incident or pipeline or alert.monitor),
        "class": _text(alert.kind),
        "custom_details": {
            "event": event.header.id,
            "monitor": cut(alert.monitor, _MAX_SUMMARY),
            "reason": cut(alert.reason, _MAX_SUMMARY),
            "value": cut(alert.value, _MAX_SUMMARY) if isinstance(alert.value, str) else alert.value,
            "expected": {"low": band.low, "high": band.high} if band else None,
            "labels": {cut(name, _MAX_TEXT): cut(value, _MAX_TEXT) for name, value in [*alert.labels.items()][:50]},
            "runs": [cut(run, _MAX_TEXT) for run in alert.evidence.runs[-20:]],
            "started": alert.started,
            "incident": cut(alert.incident, _MAX_TEXT),
        },
    }
    request |= {"client": "balog", "payload": payload}
    link = alert.evidence.link or ""
    if link.startswith(("http://", "https://")) and len(link) <= _MAX_URL:
        request |= {"client_url": link, "links": [{"href": link, "text": "Evidence"}]}
    return request


def _text(value: str) -> str:
    return cut(short_line(value), _MAX_TEXT)
