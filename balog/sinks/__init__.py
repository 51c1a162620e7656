"""Sinks: the destinations of events. One file per sink, each with a config struct, ``open``, ``write`` and ``close``.

``balog.delivery`` delivers events to them, with one thread per sink. A sink's module is imported on demand.
"""

from typing import TYPE_CHECKING

from balog.sinks.base import Batching, Delivery, Retrying, Sink, SinkConfig, SinkError, SinkOptions, send_each

if TYPE_CHECKING:
    from balog.sinks.base import SinkConfig as AnySinkConfig
else:
    from balog.sinks.base import AnySinkConfig

__all__ = [
    "AnySinkConfig",
    "Batching",
    "Delivery",
    "Retrying",
    "Sink",
    "SinkConfig",
    "SinkError",
    "SinkOptions",
    "send_each",
]
