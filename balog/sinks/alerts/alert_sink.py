"""The base of sinks that notify people of alerts, a message each: which alerts, in which order, and repeats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from balog.event import Event
from balog.event.payload import AlertPayload
from balog.sinks.alerts.alert_text import DEFAULT_TEXT, DEFAULT_TITLE, AlertTemplate, Template, read_alert
from balog.sinks.base import Delivery, SinkOptions, send_each

MAX_SERIES = 100_000
"""Series whose last change is remembered."""

NotifiedState = Literal["firing", "resolved", "no_data", "silenced", "acknowledged"]


class AlertSinkOptions(SinkOptions, kw_only=True):
    """The options of all sinks of alerts."""

    states: Annotated[
        tuple[NotifiedState, ...], Meta(min_length=1, max_length=5, description="The states that are sent.")
    ] = ("firing", "resolved")
    title: Template = DEFAULT_TITLE
    text: Template = DEFAULT_TEXT

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends an event: an alert whose state is one of ``states``.

        A silenced alert that resolves is not sent, unless ``silenced`` is, too.
        """
        alert = read_alert(event)
        if alert is None:
            return False
        if alert.state == "ok":  # the end of no_data
            return alert.previous == "no_data" and "no_data" in self.states
        return alert.state in self.states and (alert.previous != "silenced" or self.sends_ends_of_silenced(alert))

    def sends_ends_of_silenced(self, alert: AlertPayload) -> bool:
        """Return whether a change that follows a silence is sent."""
        return alert.state != "resolved" or "silenced" in self.states

    def templates(self) -> tuple[AlertTemplate, AlertTemplate]:
        """Return the templates of the title and the text.

        Raises:
            ConfigError: a template is invalid.
        """
        return AlertTemplate(self.title, "title"), AlertTemplate(self.text, "text")


class LatestChanges:
    """The last change of each series that was sent, to drop repeats and older changes.

    A change is old if neither its sequence nor its time is later: a watcher that lost its state counts from 1 again.
    """

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, datetime]] = {}

    def is_new(self, alert: AlertPayload) -> bool:
        """Return whether a change is later than the last one that was sent."""
        return _is_later(alert, self._latest.get(alert.key))

    def select(self, alerts: Iterable[AlertPayload]) -> list[AlertPayload]:
        """Return the changes that are later than those before them and the last one that was sent."""
        latest: dict[str, tuple[int, datetime]] = {}
        chosen = []
        for alert in alerts:
            if _is_later(alert, latest.get(alert.key) or self._latest.get(alert.key)):
                latest[alert.key] = _position(alert)
                chosen.append(alert)
        return chosen

    def record(self, alert: AlertPayload) -> None:
        """Record that a change was sent."""
        self._latest.pop(alert.key, None)
        self._latest[alert.key] = _position(alert)
        if len(self._latest) > MAX_SERIES:
            del self._latest[next(iter(self._latest))]


class AlertSink:
    """A sink that sends a message for each alert, in order; a subclass has ``send``."""

    def __init__(self, options: AlertSinkOptions) -> None:
        self._options = options
        self._latest = LatestChanges()

    def open(self) -> None:
        """Do nothing: the first message connects."""

    def write(self, batch: Sequence[Delivery]) -> None:
        """Send the alerts of a batch. Repeats and older changes of a series are dropped."""
        send_each(batch, self._send_if_new)

    def _send_if_new(self, delivery: Delivery) -> None:
        event = delivery.event
        alert = read_alert(event) if self._options.takes(event) else None
        if alert is not None and self._latest.is_new(alert):
            self.send(alert, event)
            self._latest.record(alert)

    def send(self, alert: AlertPayload, event: Event) -> None:
        """Send one alert.

        Raises:
            SinkError: it was not taken.
        """
        raise NotImplementedError


def _position(alert: AlertPayload) -> tuple[int, datetime]:
    return alert.sequence, moment(alert.since)


def _is_later(alert: AlertPayload, latest: tuple[int, datetime] | None) -> bool:
    return latest is None or alert.sequence > latest[0] or moment(alert.since) > latest[1]


def moment(text: str | None) -> datetime:
    """Return the time of an RFC 3339 text; the begin of 1970 if it is none."""
    try:
        timestamp = msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return datetime.fromtimestamp(0, timezone.utc)
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=timezone.utc)


def is_end(alert: AlertPayload) -> bool:
    """Return whether an alert is over."""
    return alert.state in ("resolved", "ok")
