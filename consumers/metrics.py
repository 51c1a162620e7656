"""Metrics and the reports of runs to Prometheus or Datadog. The pattern: a batch of which only some may fail.

``balog consume consumers.metrics --topics URL --set prometheus=HOST:PORT`` listens there to be scraped, and
``prometheus=FILE.prom`` writes a file for the node exporter; ``datadog=HOST:PORT`` sends to the agent's DogStatsD.

An event that is no metric after all, or a timer below zero, must not take its batch along. ``SinkAdapter.send`` raises
``PartialFailure`` with a ``Reject`` for each such event: those are dead letters with the reason, the others are done.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from balog import Event
from balog.consumers import Halt, consumer_config
from balog.consumers.sink_adapter import SinkAdapter
from balog.sinks.measuring.scraping import Listen
from balog.sinks.prometheus import PrometheusSinkConfig, Textfile
from balog.sinks.statsd import StatsdSinkConfig


@cache
def adapter(prometheus: str, datadog: str) -> SinkAdapter:
    """Give where metrics go, one for this process."""
    if bool(prometheus) == bool(datadog):
        raise Halt("consumers.metrics needs --set prometheus=HOST:PORT, prometheus=FILE.prom or datadog=HOST:PORT")
    if prometheus.endswith(".prom"):
        return SinkAdapter(PrometheusSinkConfig(textfile=Textfile(path=prometheus)))
    host, _, port = (prometheus or datadog).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Halt(f"consumers.metrics: {prometheus or datadog!r} is not HOST:PORT")
    if prometheus:
        return SinkAdapter(PrometheusSinkConfig(listen=Listen(host=host, port=int(port))))
    return SinkAdapter(StatsdSinkConfig(host=host, port=int(port), format="dogstatsd"))


@consumer_config(topic="singer-events", cls_type=("metric", "metrics", "run"), batch=(500, 1.0), concurrency=1)
def measure(settings: dict[str, Any], events: list[Event]) -> None:
    """Count, time and gauge: each process adds up what it handled, as Prometheus expects of several instances."""
    adapter(settings.get("prometheus", ""), settings.get("datadog", "")).send(events)
