"""Sinks: the destinations of events. One file per sink, each with a config struct, ``open``, ``write`` and ``close``.

``balog.outbound`` delivers events to them, with one thread per sink.
"""

from typing import TYPE_CHECKING

from balog.sinks.base import Batching, Delivery, Retrying, Sink, SinkConfig, SinkError, SinkOptions
from balog.sinks.clickhouse import ClickHouseSinkConfig
from balog.sinks.datadog import DatadogSinkConfig
from balog.sinks.elastic import ElasticSinkConfig
from balog.sinks.otlp import OtlpSinkConfig
from balog.sinks.pagerduty import PagerDutySinkConfig
from balog.sinks.plugin_configs import with_plugins
from balog.sinks.prometheus import PrometheusSinkConfig
from balog.sinks.service import ServiceSinkConfig
from balog.sinks.statsd import StatsdSinkConfig
from balog.sinks.store import StoreSinkConfig
from balog.sinks.topic import TopicSinkConfig
from balog.sinks.webhook import WebhookSinkConfig
from balog.sinks.ytsaurus import YTsaurusSinkConfig

AnySinkConfig = (
    ClickHouseSinkConfig
    | DatadogSinkConfig
    | ElasticSinkConfig
    | OtlpSinkConfig
    | PagerDutySinkConfig
    | PrometheusSinkConfig
    | ServiceSinkConfig
    | StatsdSinkConfig
    | StoreSinkConfig
    | TopicSinkConfig
    | WebhookSinkConfig
    | YTsaurusSinkConfig
)
if not TYPE_CHECKING:
    AnySinkConfig = with_plugins(AnySinkConfig)

__all__ = [
    "AnySinkConfig",
    "Batching",
    "ClickHouseSinkConfig",
    "DatadogSinkConfig",
    "Delivery",
    "ElasticSinkConfig",
    "OtlpSinkConfig",
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
    "YTsaurusSinkConfig",
]
