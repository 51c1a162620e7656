"""How many records each stream carried, from the counters that taps report. The pattern: a batch, failing in part."""

from __future__ import annotations

from collections import Counter
from typing import Any

from balog import Event
from balog.common.errors import EventError
from balog.consumers import PartialFailure, Reject, consumer_config
from balog.event.payload import MetricPayload, read

totals: Counter[tuple[str, str, str]] = Counter()
"""Records by application, run and stream since this process began; a counter's value is what came since the last."""

REMEMBERED = 10_000
"""Streams of runs that are added up at most: a process that goes on for months forgets the oldest."""


@consumer_config(
    topic="singer-events", cls_type="metric", where="payload.metric = 'record_count'", batch=(100, 0.5), concurrency=1
)
def count_records(settings: dict[str, Any], events: list[Event]) -> None:
    """Add the batch up and print each stream's new total: ``airports   3,376 records  (tap-jsonl)``."""
    changed: dict[tuple[str, str, str], None] = {}  # in the order of their first event
    failed: dict[str, BaseException | str] = {}
    for event in events:
        try:
            metric = read(event)
        except EventError as error:
            failed[event.header.id] = Reject(f"no metric: {error}")  # it will never be one; the others go on
            continue
        if isinstance(metric, MetricPayload) and metric.type == "counter":
            context = event.header.context
            stream = str(metric.tags.get("stream") or metric.tags.get("endpoint") or "?")  # singer-python says endpoint
            key = str(context.get("application", "?")), str(context.get("run_id")), stream
            totals[key] = totals.pop(key, 0) + round(metric.value)  # the last that changed comes last
            changed[key] = None
    for key in changed:
        print(f"{key[2]:<20} {totals[key]:>12,} records  ({key[0]})")
    while len(totals) > REMEMBERED:
        del totals[next(iter(totals))]
    if failed:
        raise PartialFailure(failed)
