"""A sink that posts events to a Slack channel by an incoming webhook (docs.slack.dev/messaging)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from balog.event import Event
from balog.http import CaFile, HttpClient, Timeout
from balog.secrets import Secret
from balog.sinks import Delivery, SinkError, SinkOptions

__all__ = ["SlackSink", "SlackSinkConfig"]

MAX_TEXT = 40_000
"""Characters of a message; Slack cuts longer ones."""

MAX_LINE = 2_000
"""Characters of an event, at most, before & < > are escaped."""


class SlackSinkConfig(SinkOptions, tag_field="type", tag="slack", forbid_unknown_fields=True, kw_only=True):
    """Post events to a Slack channel, a line each; about a message a batch."""

    webhook: Annotated[Secret, Meta(description="The URL of an incoming webhook; it contains its own credentials.")]
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None

    @property
    def name(self) -> str:
        """``slack``: the webhook's URL is secret."""
        return "slack"

    def build(self) -> SlackSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the secret is missing, or is not a URL.
        """
        return SlackSink(HttpClient(self.webhook.reveal("webhook"), timeout=self.timeout, ca_file=self.ca_file))


class SlackSink:
    """See ``SlackSinkConfig``."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def open(self) -> None:
        """Do nothing: the first message connects."""

    def write(self, batch: Sequence[Delivery]) -> None:
        """Post the events in as few messages as their length allows."""
        start = 0
        while start < len(batch):
            lines: list[str] = []
            length = 0
            for event, _ in batch[start:]:
                line = line_of(event)
                length += len(line) + 1
                if lines and length > MAX_TEXT:
                    break
                lines.append(line)
            try:
                self._post("\n".join(lines))
            except SinkError as error:
                # Slack does not name the event to blame. The remaining ones come again in smaller batches.
                raise error.of_batch({}, range(start, len(batch))) from None
            start += len(lines)

    def _post(self, text: str) -> None:
        answer = self._client.post("", msgspec.json.encode({"text": text}))
        if answer.body != b"ok":
            raise SinkError(f"{self._client.place} did not answer ok; is the URL that of an incoming webhook?")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def line_of(event: Event) -> str:
    """Return the line of an event: level, channel and message, with Slack's three control characters escaped."""
    message = event.payload.get("message") or event.cls_type
    text = f"{event.level} {event.header.channel}: {message}".replace("\n", " ")[:MAX_LINE]
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
