"""Report the counters and gauges of a process as ``metric`` events to its own sinks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct

from balog.common.signals import StepThread
from balog.common.stats import StatSample
from balog.event import Event, encode
from balog.sinks import Delivery


class MetricsConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Send the process's own counters to the sinks as metrics: of the pipe, and of each sink.

    Where ``pipe_read_wait_seconds`` grows by nearly a second a second, the process before the broker is slow; where
    ``pipe_write_wait_seconds`` does, the process after it.
    """

    stage: Annotated[
        str, Meta(min_length=1, max_length=200, description="The tag stage, and the first part of the channel.")
    ] = "broker"
    every: Annotated[float, Meta(ge=0.1, le=86400, description="Seconds between two reports.")] = 10.0


class RunMetricsConfig(MetricsConfig, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Send the sidecar's own counters to the sinks as metrics: of the command's output, and of each sink."""

    stage: Annotated[
        str, Meta(min_length=1, max_length=200, description="The tag stage, and the first part of the channel.")
    ] = "run"


class StatsReporter(StepThread):
    """Sends counters, as deltas, and gauges, at an interval and at the end. The first report has all of them, a later
    one those that changed.

    Args:
        config: the interval, and the stage.
        samples: returns the current numbers; called from a thread of its own.
        put: called with the events, from that thread.
        say: called with one line for the user when a report fails.
        pipeline: the name of the pipeline in the events, for monitors; None for none.
    """

    def __init__(
        self,
        config: MetricsConfig,
        samples: Callable[[], Iterable[StatSample]],
        put: Callable[[Delivery], None],
        say: Callable[[str], None],
        pipeline: str | None = None,
    ) -> None:
        super().__init__("balog meter", say, config.every)
        self._config = config
        self._pipeline = pipeline
        self._samples = samples
        self._put = put
        self._reported: dict[tuple[str, ...], float] = {}

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._try_step()

    def step(self) -> None:
        """Report what has changed."""
        context: dict[str, Any] = {"fqdn": os.uname().nodename, "application": "balog", "process": os.getpid()}
        if self._pipeline is not None:
            context["pipeline"] = self._pipeline
        if run_id := os.environ.get("BALOG_RUN_ID", "").encode("utf-8", "replace").decode():
            context["run_id"] = run_id
        for sample in list(self._samples()):  # before the events of this report change them
            key = (sample.name, *sample.labels.values())
            before = self._reported.get(key)
            value = sample.value
            if sample.kind == "counter":
                value = round(max(value - (before or 0.0), 0.0), 6)
                self._reported[key] = (before or 0.0) + value
            else:
                self._reported[key] = value
            if before is not None and self._reported[key] == before:
                continue
            payload = {
                "cls_type": "metric",
                "version": "1.0.0",
                "type": sample.kind,
                "metric": sample.name,
                "value": value,
                "tags": {"stage": self._config.stage, **sample.labels},
            }
            event = Event.new(f"{self._config.stage}.metric", payload, context=context)
            self._put(Delivery(event, encode(event)))
