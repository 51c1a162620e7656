"""Events of the people who look after alerts: silences and acknowledgements, for every watcher and the history."""

from __future__ import annotations

import socket
import time
from datetime import datetime, timedelta, timezone

from balog.common.errors import ConfigError, EventError
from balog.event import Event
from balog.event.payload import AlertAcknowledgementPayload, AlertSilencePayload
from balog.watch.config.durations import parse_duration

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
    _check(match, why)
    payload = AlertSilencePayload(match=match, until=_text(until), why=why, by=by)
    return _event("alert_silence", payload)


def acknowledgement(match: str, until: datetime | None, why: str, by: str) -> Event:
    """Return the event that acknowledges the firing alerts of monitors, or of keys, that match a glob.

    Args:
        until: aware; None for as long as they fire.
        by: who, such as a user and a machine.

    Raises:
        ConfigError: the glob or a text is empty or too long.
    """
    _check(match, why)
    ends = None if until is None else _text(until)
    payload = AlertAcknowledgementPayload(match=match, until=ends, why=why, by=by)
    return _event("alert_acknowledgement", payload)


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


def _event(kind: str, payload: AlertSilencePayload | AlertAcknowledgementPayload) -> Event:
    try:
        return Event.new(f"balog.{kind}", payload, context={"application": "balog", "fqdn": socket.gethostname()})
    except EventError as error:
        raise ConfigError(str(error)) from None


def _check(match: str, why: str) -> None:
    if not 0 < len(match) <= _MAX_MATCH:
        raise ConfigError(f"the name of a monitor, or the key of an alert, has 1 to {_MAX_MATCH} characters")
    if not why.strip() or len(why) > _MAX_TEXT:
        raise ConfigError(f"--why needs a reason of at most {_MAX_TEXT} characters")


def _text(when: datetime) -> str:
    return when.astimezone(timezone.utc).isoformat(timespec="seconds")


def now() -> datetime:
    """Return the time."""
    return datetime.fromtimestamp(time.time(), timezone.utc)
