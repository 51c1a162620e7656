"""A sink that posts events to a Slack channel by an incoming webhook (docs.slack.dev/messaging).

Alerts of monitors are messages of their own, in Block Kit; other events are lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from balog.common.http import CaFile, HttpClient, Timeout
from balog.common.secrets import Secret
from balog.event import Event
from balog.event.payload import AlertPayload
from balog.sinks import Delivery, SinkError
from balog.sinks.alerts.alert_sink import AlertSinkOptions, LatestChanges
from balog.sinks.alerts.alert_text import AlertTemplate, facts, read_alert
from balog.sinks.base import RequestErrors

__all__ = ["SlackSink", "SlackSinkConfig"]

MAX_TEXT = 40_000
"""Characters of a message; Slack cuts longer ones."""

MAX_LINE = 2_000
"""Characters of an event, at most, before & < > are escaped."""


MAX_HEADER = 150
"""Characters of a header block."""

MAX_FACT = 350
"""Characters of a fact, which escaping makes five times longer at most; a field has at most 2,000."""

MAX_SECTION = 3_000
"""Characters of the text of a section."""


class SlackSinkConfig(AlertSinkOptions, tag_field="type", tag="slack", forbid_unknown_fields=True, kw_only=True):
    """Post alerts to a Slack channel, a message each, and other events, a line each."""

    webhook: Annotated[Secret, Meta(description="The URL of an incoming webhook; it contains its own credentials.")]
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None

    @property
    def name(self) -> str:
        """``slack``: the webhook's URL is secret."""
        return "slack"

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends an event: all but alerts in other states."""
        return event.cls_type != "alert" or super().takes(event)

    def build(self) -> SlackSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the secret is missing, or is not a URL; a template is invalid.
        """
        templates = self.templates()
        client = HttpClient(self.webhook.reveal("webhook"), timeout=self.timeout, ca_file=self.ca_file)
        return SlackSink(client, templates, self)

    def preview(self, event: Event) -> str:
        """Return the message without its URL."""
        alert = read_alert(event)
        message = {"text": line_of(event)} if alert is None else message_of(alert, self.templates())
        return msgspec.json.format(msgspec.json.encode(message)).decode()


class SlackSink:
    """See ``SlackSinkConfig``."""

    def __init__(
        self, client: HttpClient, templates: tuple[AlertTemplate, AlertTemplate], options: SlackSinkConfig
    ) -> None:
        self._client = client
        self._templates = templates
        self._options = options
        self._latest = LatestChanges()

    def open(self) -> None:
        """Do nothing: the first message connects."""

    def write(self, batch: Sequence[Delivery]) -> None:
        """Post each alert, and the other events between alerts in as few messages as their length allows."""
        errors = RequestErrors()
        start = 0
        while start < len(batch):
            alert = read_alert(batch[start].event)
            lines = [] if alert is not None else _lines(batch[start:])
            try:
                if alert is None:
                    self._post({"text": "\n".join(lines)})
                elif self._options.takes(batch[start].event) and self._latest.is_new(alert):
                    self._post(message_of(alert, self._templates))
                    self._latest.record(alert)
            except SinkError as error:
                if error.retryable or alert is None:
                    # Slack does not name the event to blame. The remaining ones come again in smaller batches.
                    errors.keep(range(start, len(batch)), error)
                    break
                errors.reject({start: str(error)})
            else:
                for delivery in batch[start:][: len(lines) or 1]:
                    delivery.accept()
            start += max(1, len(lines))
        errors.finish()

    def _post(self, message: dict[str, Any]) -> None:
        answer = self._client.post("", msgspec.json.encode(message))
        if answer.body != b"ok":
            raise SinkError(f"{self._client.place} did not answer ok; is the URL that of an incoming webhook?")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def line_of(event: Event) -> str:
    """Return the line of an event: level, channel and message, with Slack's three control characters escaped."""
    message = event.payload.get("message") or event.cls_type
    text = f"{event.level} {event.header.channel}: {message}".replace("\n", " ")[:MAX_LINE]
    return escape(text)


def message_of(alert: AlertPayload, templates: tuple[AlertTemplate, AlertTemplate]) -> dict[str, Any]:
    """Return the message of an alert: a title for notifications, and blocks."""
    title, text = templates
    body = text.render(alert, MAX_SECTION - MAX_LINE, escape)
    link = alert.evidence.link or ""
    if link.startswith(("http://", "https://")) and link.isprintable() and len(link) < MAX_LINE - 20:
        body += f"\n<{escape(link).replace('|', '%7C')}|Evidence>"
    fields = [_field(name, value) for name, value in facts(alert).items()]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": title.render(alert, MAX_HEADER, escape)}},
        {"type": "section", "text": {"type": "mrkdwn", "text": body, "verbatim": True}},
        {"type": "section", "fields": fields},
    ]
    return {"text": title.render(alert, MAX_LINE, escape), "blocks": blocks}


def escape(text: str) -> str:
    """Return a text with Slack's three control characters escaped, so that it mentions nobody and links nowhere."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _field(name: str, value: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": f"*{name}*\n{escape(value[:MAX_FACT])}", "verbatim": True}


def _lines(batch: Sequence[Delivery]) -> list[str]:
    """Return the lines of the first events that fit into a message, up to the next alert."""
    lines: list[str] = []
    length = 0
    for event, _ in batch:
        line = line_of(event)
        length += len(line) + 1
        if lines and (length > MAX_TEXT or read_alert(event) is not None):
            break
        lines.append(line)
    return lines
