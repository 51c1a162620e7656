"""Report a broker's throughput and waiting times as metrics among its events."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Annotated

from msgspec import Meta, Struct

from balog.event import Event, encode
from balog.sinks import Delivery

__all__ = ["BrokerMetrics", "MetricsConfig"]

_STATS = {
    "pipe_bytes": "bytes",
    "pipe_lines": "lines",
    "pipe_logs": "logs",
    "pipe_read_wait_seconds": "read_wait",
    "pipe_write_wait_seconds": "write_wait",
}


class MetricsConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Send metrics of the pipe itself to the sinks: bytes, lines, LOG messages, seconds that it waited for each side.

    Where ``pipe_read_wait_seconds`` grows by nearly a second a second, what stands before the broker is slow; where
    ``pipe_write_wait_seconds`` does, what stands behind it.
    """

    stage: Annotated[
        str, Meta(min_length=1, max_length=200, description="The tag stage, and the first part of the channel.")
    ] = "broker"
    every: Annotated[float, Meta(ge=0.1, le=86400, description="Seconds between two reports.")] = 10.0


class BrokerMetrics:
    """Reports deltas of the broker's counters, at an interval and at the end.

    Args:
        config: how often, and as whom.
        stats: gives the pipe's, see ``Pipe.stats``; called from a thread of its own.
        put: takes the events; called from that thread.
    """

    def __init__(
        self, config: MetricsConfig, stats: Callable[[], dict[str, float]], put: Callable[[Delivery], None]
    ) -> None:
        self._config = config
        self._read_stats = stats
        self._put = put
        self._reported = dict.fromkeys(_STATS, 0.0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="balog meter", daemon=True)

    def __enter__(self) -> BrokerMetrics:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        while self._thread.is_alive():
            self._thread.join(1.0)  # so that a signal is heard

    def _run(self) -> None:
        while not self._ended.wait(self._config.every):
            self._report()
        self._report()

    def _report(self) -> None:
        context = {"fqdn": os.uname().nodename, "application": "balog", "process": os.getpid()}
        if run_id := os.environ.get("BALOG_RUN_ID", "").encode("utf-8", "replace").decode():
            context["run_id"] = run_id
        stats = self._read_stats()
        for metric, name in _STATS.items():
            value = round(max(stats[name] - self._reported[metric], 0.0), 6)
            self._reported[metric] += value
            payload = {
                "cls_type": "metric",
                "version": "1.0.0",
                "type": "counter",
                "metric": metric,
                "value": value,
                "tags": {"stage": self._config.stage},
            }
            event = Event.new(f"{self._config.stage}.metric", payload, context=context)
            self._put(Delivery(event, encode(event)))
