"""Events to any HTTP endpoint, one or a batch per request, signed by Standard Webhooks (standardwebhooks.com)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from balog.common.http import CaFile, HttpClient, Timeout, Url
from balog.common.secrets import Secret
from balog.sinks.base import Delivery, SinkGuarantee, SinkOptions, send_each
from balog.sinks.http_sink import Headers, HttpSink, reveal_headers
from balog.sinks.signing import batch_id, read_keys, sign


class WebhookSinkConfig(SinkOptions, tag_field="type", tag="webhook", forbid_unknown_fields=True, kw_only=True):
    """Post events to a URL, at least once; who takes them knows an event or a batch again by its ``webhook-id``."""

    examples: ClassVar = (
        {
            "type": "webhook",
            "url": "https://hooks.example.com/balog",
            "per": "batch",
            "secrets": [{"env": "HOOK_KEY"}],
            "headers": {"Authorization": {"file": "/run/secrets/hook"}},
        },
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "the endpoint has answered 2xx",
            "an event, or a batch",
            repeats="has the same `webhook-id`",
        ),
    )

    url: Annotated[Url | Secret, Meta(description="Where to post; by environment or file if there is a key in it.")]
    per: Annotated[
        Literal["event", "batch"], Meta(description="A request carries one event, or a JSON array of them.")
    ] = "event"
    secrets: Annotated[
        tuple[Secret, ...],
        Meta(
            max_length=5, description="Keys that sign, whsec_ and base64; several while receivers change to a new one."
        ),
    ] = ()
    headers: Headers = msgspec.field(default_factory=dict)
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None

    @property
    def name(self) -> str:
        """``webhook HOST``: the rest of the URL may be a secret."""
        if isinstance(self.url, Secret):
            return f"webhook ${self.url.env}" if self.url.env else f"webhook {self.url.file}"
        try:
            return f"webhook {urlsplit(self.url).netloc.rpartition('@')[2]}"
        except ValueError:
            return "webhook URL"

    def build(self) -> WebhookSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: a URL, header or key is invalid, or a secret is missing.
        """
        headers = reveal_headers(self.headers, ours="webhook-")
        keys = read_keys(self.secrets)
        url = self.url.reveal("url") if isinstance(self.url, Secret) else self.url
        client = HttpClient(url, headers=headers, timeout=self.timeout, ca_file=self.ca_file)
        return WebhookSink(client, keys, self.per)


class WebhookSink(HttpSink):
    """See ``WebhookSinkConfig``."""

    def __init__(self, client: HttpClient, keys: Sequence[bytes], per: Literal["event", "batch"]) -> None:
        super().__init__(client)
        self._keys = keys
        self._per = per

    def write(self, batch: Sequence[Delivery]) -> None:
        """Post a batch in one request, or each of its events in one."""
        if self._per == "batch":
            name = batch_id([event.header.id for event, _ in batch])
            self._post(name, b"[" + b",".join(body for _, body in batch) + b"]")
            return
        send_each(batch, lambda delivery: self._post(delivery.event.header.id, delivery.body))

    def _post(self, name: str, body: bytes) -> None:
        self._client.post("", body, headers=sign(name, body, self._keys))
