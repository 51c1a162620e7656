"""Errors and failed runs to PagerDuty, resolved when the run succeeds again. The pattern: order where order matters.

``PAGERDUTY_ROUTING_KEY=… balog consume consumers.alerts --topics URL``; instead of the variable a file:
``--set pagerduty_key_file=PATH``. Accounts of the EU region: ``--set pagerduty=https://events.eu.pagerduty.com``.

A pipeline is an incident. Its failure must come before the success that resolves it, so events of one pipeline are
handled one after the other, also when one has to be tried again; those of other pipelines pass it meanwhile. Kafka and
FIFO queues keep the order of a key: let the ``topic`` sink that feeds them have ``"key": "context.application"``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from balog import Event
from balog.common.secrets import Secret
from balog.consumers import Halt, consumer_config
from balog.consumers.sink_adapter import SinkAdapter
from balog.sinks.pagerduty import PagerDutySinkConfig

VARIABLE = "PAGERDUTY_ROUTING_KEY"


@cache
def pagerduty(url: str, key_file: str) -> SinkAdapter:
    """Give the way to PagerDuty, one for this process."""
    key = Secret(file=key_file) if key_file else Secret(env=VARIABLE)
    try:
        return SinkAdapter(PagerDutySinkConfig(routing_key=key, url=url))
    except Halt as error:
        raise Halt(f"consumers.alerts needs {VARIABLE} or --set pagerduty_key_file=PATH: {error}") from None


@consumer_config(
    topic="singer-events",
    where="level >= 'ERROR' OR cls_type = 'run'",
    ordered_by="COALESCE(context.application, channel)",
    concurrency=4,
    timeout=60,
)
def alert(settings: dict[str, Any], event: Event) -> None:
    """Trigger the pipeline's incident, or resolve it; a repeated one changes nothing, so it may be sent twice."""
    adapter = pagerduty(
        settings.get("pagerduty", "https://events.pagerduty.com"), settings.get("pagerduty_key_file", "")
    )
    adapter.send([event])
