"""A sink that posts alerts to a Microsoft Teams channel by the webhook of a workflow, as Adaptive Cards."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from balog.common.http import CaFile, HttpClient, Timeout
from balog.common.secrets import Secret
from balog.event import Event
from balog.event.payload import AlertPayload
from balog.sinks.alerts.alert_sink import AlertSink, AlertSinkOptions
from balog.sinks.alerts.alert_text import MAX_TEXT, MAX_TITLE, AlertTemplate, facts, read_alert

__all__ = ["TeamsSink", "TeamsSinkConfig"]

SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
MAX_LINK = 2000
COLORS = {"info": "Accent", "warning": "Warning", "error": "Attention", "critical": "Attention"}
MARKDOWN = re.compile(r"([\\`*_~\[\]()#+\-.!<>|])")


class TeamsSinkConfig(AlertSinkOptions, tag_field="type", tag="teams", forbid_unknown_fields=True, kw_only=True):
    """Post alerts to a Microsoft Teams channel, a card each."""

    webhook: Annotated[Secret, Meta(description="The URL of a workflow's webhook; it contains its own credentials.")]
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None

    @property
    def name(self) -> str:
        """``teams``: the webhook's URL is secret."""
        return "teams"

    def build(self) -> TeamsSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the secret is missing, or is not a URL; a template is invalid.
        """
        templates = self.templates()
        url = self.webhook.reveal("webhook")
        return TeamsSink(HttpClient(url, timeout=self.timeout, ca_file=self.ca_file), templates, self)

    def preview(self, event: Event) -> str | None:
        """Return the message without its URL."""
        alert = read_alert(event)
        if alert is None:
            return None
        return msgspec.json.format(msgspec.json.encode(message_of(alert, self.templates()))).decode()


class TeamsSink(AlertSink):
    """See ``TeamsSinkConfig``."""

    def __init__(
        self, client: HttpClient, templates: tuple[AlertTemplate, AlertTemplate], options: TeamsSinkConfig
    ) -> None:
        super().__init__(options)
        self._client = client
        self._templates = templates

    def send(self, alert: AlertPayload, event: Event) -> None:
        """Post the card of an alert."""
        self._client.post("", msgspec.json.encode(message_of(alert, self._templates)))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def message_of(alert: AlertPayload, templates: tuple[AlertTemplate, AlertTemplate]) -> dict[str, Any]:
    """Return the message with the card of an alert. Text runs know no Markdown; facts do, and are escaped."""
    title, text = templates
    color = "Good" if alert.state == "resolved" else COLORS[alert.severity]
    heading = {"type": "TextRun", "text": title.render(alert, MAX_TITLE), "weight": "Bolder", "size": "Large"}
    rows = [{"title": name, "value": MARKDOWN.sub(r"\\\1", value)} for name, value in facts(alert).items()]
    card: dict[str, Any] = {
        "$schema": SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [
            {"type": "RichTextBlock", "inlines": [{**heading, "color": color}]},
            {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text.render(alert, MAX_TEXT)}]},
            {"type": "FactSet", "facts": rows},
        ],
    }
    link = alert.evidence.link or ""
    if link.startswith(("http://", "https://")) and link.isprintable() and len(link) <= MAX_LINK:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Evidence", "url": link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}
