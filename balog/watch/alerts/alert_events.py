"""Alerts as events, and events of the people who look after them: silences and acknowledgements, for every watcher."""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta, timezone

from msgspec import Raw, json

from balog.common.errors import ConfigError, EventError
from balog.event import Event, Level
from balog.event.payload import (
    AlertAcknowledgementPayload,
    AlertEvidence,
    AlertPayload,
    AlertSilencePayload,
    AlertState,
)
from balog.watch.config.durations import parse_duration
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


_MAX_MATCH = 500
_MAX_TEXT = 2000


def silence(match: str, until: datetime, why: str, by: str) -> Event:
    """Return the event that silences the alerts of monitors, or of keys, that match a glob.

    Args:
        until: aware; a time that is past ends the silence.
        by: who, such as a user and a machine.

    Raises:
        ConfigError: the glob or a text is empty or too long.
    """
    return _event(AlertSilencePayload(match=match, until=_text(until), why=why, by=by))


def acknowledgement(match: str, until: datetime | None, why: str, by: str) -> Event:
    """Return the event that acknowledges the firing alerts of monitors, or of keys, that match a glob.

    Args:
        until: aware; None for as long as they fire.
        by: who, such as a user and a machine.

    Raises:
        ConfigError: the glob or a text is empty or too long.
    """
    ends = None if until is None else _text(until)
    return _event(AlertAcknowledgementPayload(match=match, until=ends, why=why, by=by))


def parse_end(text: str, now: datetime) -> datetime:
    """Return the time at which a duration such as ``2h`` ends, or an RFC 3339 time; ``end`` is now.

    Raises:
        ConfigError: neither, or not before the year 9999.
    """
    if text == "end":
        return now
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return now + timedelta(seconds=parse_duration(text))
    if when.tzinfo is None:
        raise ConfigError(f"{text!r:.40} has no time zone; expected 2026-11-24T18:00:00+01:00")
    try:
        return when.astimezone(timezone.utc)
    except OverflowError:
        raise ConfigError(f"{text!r:.40} is too far away") from None


def _event(payload: AlertSilencePayload | AlertAcknowledgementPayload) -> Event:
    if not 0 < len(payload.match) <= _MAX_MATCH:
        raise ConfigError(f"the name of a monitor, or the key of an alert, has 1 to {_MAX_MATCH} characters")
    if not payload.why.strip() or len(payload.why) > _MAX_TEXT:
        raise ConfigError(f"--why needs a reason of at most {_MAX_TEXT} characters")
    kind = "alert_silence" if isinstance(payload, AlertSilencePayload) else "alert_acknowledgement"
    try:
        return Event.new(
            f"{APPLICATION}.{kind}", payload, context={"application": APPLICATION, "fqdn": socket.gethostname()}
        )
    except EventError as error:
        raise ConfigError(str(error)) from None


def _text(when: datetime) -> str:
    return when.astimezone(timezone.utc).isoformat(timespec="seconds")
