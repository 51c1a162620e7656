"""How many records each stream carried, from the record counters that taps report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from balog import Event
from balog.consumers import consumer_config
from balog.payload import MetricPayload, read

totals: Counter[tuple[str, str, str]] = Counter()
"""Records by application, run and stream since this process began; a counter's value is what came since the last."""


@consumer_config(topic="singer-events", cls_type="metric")
def count_records(settings: dict[str, Any], event: Event) -> None:
    """Add a ``record_count`` to its stream's total and print that: ``airports   3,376 records  (tap-jsonl)``."""
    metric = read(event)
    if not isinstance(metric, MetricPayload) or (metric.type, metric.metric) != ("counter", "record_count"):
        return
    application = str(event.header.context.get("application", "?"))
    stream = str(metric.tags.get("stream") or metric.tags.get("endpoint") or "?")  # singer-python says endpoint
    key = application, str(event.header.context.get("run_id")), stream
    totals[key] += round(metric.value)
    print(f"{stream:<20} {totals[key]:>12,} records  ({application})")
