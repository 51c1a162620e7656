"""Report the counters and gauges of a process as ``metric`` events to its own sinks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct

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


class StatsReporter:
    """Sends counters, as deltas, and gauges, at an interval and at the end. The first report has all of them, a later
    one those that changed.

    Args:
        config: the interval, and the stage.
        samples: returns the current numbers; called from a thread of its own.
        put: called with the events, from that thread.
        pipeline: the name of the pipeline in the events, for monitors; None for none.
    """

    def __init__(
        self,
        config: MetricsConfig,
        samples: Callable[[], Iterable[StatSample]],
        put: Callable[[Delivery], None],
        pipeline: str | None = None,
    ) -> None:
        self._config = config
        self._pipeline = pipeline
        self._samples = samples
        self._put = put
        self._reported: dict[tuple[str, ...], float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="balog meter", daemon=True)

    def __enter__(self) -> StatsReporter:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        while self._thread.is_alive():
            self._thread.join(1.0)  # so that a signal is heard

    def _run(self) -> None:
        while not self._ended.wait(self._config.every):
            self._report()
        self._report()

    def _report(self) -> None:
        context = stage_context(self._pipeline)
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


def stage_context(pipeline: str | None) -> dict[str, Any]:
    """Return the context of the own events of a stage, with the pipeline's name and the run's id if they are known."""
    context: dict[str, Any] = {"fqdn": os.uname().nodename, "application": "balog", "process": os.getpid()}
    if pipeline is not None:
        context["pipeline"] = pipeline
    if run_id := os.environ.get("BALOG_RUN_ID", "").encode("utf-8", "replace").decode():
        context["run_id"] = run_id
    return context
