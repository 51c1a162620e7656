"""The reports of runs to a webhook, signed as Standard Webhooks says. The pattern: ``async``, many requests under way.

``WEBHOOK_SECRET=whsec_… balog consume consumers.callbacks --topics URL --set webhook=https://…``; instead of the
variable a file: ``--set webhook_secret_file=PATH``.

Receivers are slow and their networks worse. While one request waits for its answer three others are under way, as many
as the sink keeps connections. A receiver that is down is waited for; what it refuses is a dead letter; a repetition it
knows by its ``webhook-id``, the event's id. For a second receiver copy the function: each has its own failures.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from balog import Event
from balog.common.secrets import Secret
from balog.consumers import Halt, consumer_config
from balog.consumers.sink_adapter import SinkAdapter
from balog.sinks.webhook import WebhookSinkConfig

VARIABLE = "WEBHOOK_SECRET"


@cache
def webhook(url: str, secret_file: str) -> SinkAdapter:
    """Give the way to the receiver, one for this process; it posts one event a request."""
    if not url:
        raise Halt(f"consumers.callbacks needs --set webhook=URL, and {VARIABLE} or webhook_secret_file=PATH")
    secret = Secret(file=secret_file) if secret_file else Secret(env=VARIABLE)
    return SinkAdapter(WebhookSinkConfig(url=url, secrets=(secret,)))


@consumer_config(topic="singer-events", cls_type="run", concurrency=4, timeout=60)
async def call_back(settings: dict[str, Any], event: Event) -> None:
    """Post the event; the request blocks a thread of its own, so that the event loop goes on."""
    adapter = webhook(settings.get("webhook", ""), settings.get("webhook_secret_file", ""))
    await asyncio.to_thread(adapter.send, [event])
