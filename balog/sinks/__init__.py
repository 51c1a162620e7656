"""Sinks: the destinations of events. One file per sink, each with a config struct, ``open``, ``write`` and ``close``.

``balog.delivery`` delivers events to them, with one thread per sink. A sink's module is imported on demand.
"""

from typing import TYPE_CHECKING, Any

from balog.sinks.base import SINKS, Batching, Delivery, Retrying, Sink, SinkConfig, SinkError, SinkOptions

if TYPE_CHECKING:
    from balog.sinks.alertmanager import AlertmanagerSinkConfig
    from balog.sinks.base import SinkConfig as AnySinkConfig
    from balog.sinks.datadog import DatadogSinkConfig
    from balog.sinks.elastic import ElasticSinkConfig
    from balog.sinks.email import EmailSinkConfig
    from balog.sinks.pagerduty import PagerDutySinkConfig
    from balog.sinks.prometheus import PrometheusSinkConfig
    from balog.sinks.service import ServiceSinkConfig
    from balog.sinks.statsd import StatsdSinkConfig
    from balog.sinks.store import StoreSinkConfig
    from balog.sinks.topic import TopicSinkConfig
    from balog.sinks.webhook import WebhookSinkConfig
else:
    from balog.sinks.base import AnySinkConfig

__all__ = [
    "AlertmanagerSinkConfig",
    "AnySinkConfig",
    "Batching",
    "DatadogSinkConfig",
    "Delivery",
    "ElasticSinkConfig",
    "EmailSinkConfig",
    "PagerDutySinkConfig",
    "PrometheusSinkConfig",
    "Retrying",
    "ServiceSinkConfig",
    "Sink",
    "SinkConfig",
    "SinkError",
    "SinkOptions",
    "StatsdSinkConfig",
    "StoreSinkConfig",
    "TopicSinkConfig",
    "WebhookSinkConfig",
]


def __getattr__(name: str) -> Any:
    """Return the config of a sink, imported on demand."""
    for tag, place in SINKS.builtin.items():
        if place.endswith(f":{name}"):
            return SINKS.load(tag)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
