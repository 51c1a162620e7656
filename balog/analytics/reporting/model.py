"""The report as data: ``--json`` prints it, the page and the terminal show it.

Times are UTC, durations are in seconds, sizes in bytes. ``schemas/report/1.0.0.json`` is generated from these classes.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from balog.analytics.reporting.query import Comparison, Period

VERSION = "1.0.0"
MOST_ROWS = 10_000
"""The longest list, so that neither the driver's memory nor the document grows with the archive."""


class HealthStat(Struct, kw_only=True):
    """A stat of the health, now and before.

    ``unit`` is ``count`` or ``seconds``. ``change`` is now / before, null if either is missing. ``verdict`` is
    ``better``, ``worse``, ``same``, or ``unknown`` if there is nothing to compare, or neither direction is good.
    """

    name: str
    unit: str
    now: float | None
    before: float | None
    change: float | None
    verdict: str


class HealthFinding(Struct, kw_only=True):
    """A finding of the health.

    ``kind`` is ``new_failure``, ``more_failures``, ``failed_runs``, ``slower``, ``silent`` or ``bad_lines``. ``since``
    is when it began, if known. ``link`` is an anchor in the page.
    """

    kind: str
    words: str
    since: datetime | None = None
    link: str | None = None


class FailureExample(Struct, kw_only=True):
    """The first event of a failure; its message is not masked."""

    id: str | None
    timestamp: datetime | None
    run_id: str | None
    message: str | None


class Failure(Struct, kw_only=True):
    """Errors with the same fingerprint.

    ``events`` counts those in the report's period, ``now`` and ``before`` those in the two times compared. ``new`` is
    true if none was before ``now`` in all data. ``runs`` has some run ids.
    """

    fingerprint: str
    error_type: str | None
    message: str
    level: str | None
    channels: list[str]
    applications: list[str]
    events: int
    now: int
    before: int
    first: datetime
    last: datetime
    new: bool
    example: FailureExample | None
    runs: list[str] = []


class RunStreamStats(Struct, kw_only=True):
    """The records and bytes of one stream in a run's own report."""

    stream: str
    records: int | None
    bytes: int | None


class RunStats(Struct, kw_only=True):
    """One run.

    Without a report, ``outcome`` is ``unknown``; records, bytes and exit code are null; and the duration is the time
    between the first and the last event. ``failures`` are fingerprints.
    """

    run_id: str
    applications: list[str]
    started: datetime
    duration: float
    outcome: str
    exit_code: int | None
    problem: str | None
    records: int | None
    bytes: int | None
    events: int
    errors: int
    streams: list[RunStreamStats]
    failures: list[str] = []


class StreamSummary(Struct, kw_only=True):
    """The metrics of one stream.

    ``seconds`` is the sum of its timers, ``p50`` and ``p95`` belong to the longest of them (``timer``), and ``rate`` is
    records per second of that sum. ``slower`` is true only if there are enough values for a comparison.
    """

    stream: str
    applications: list[str]
    records: int | None
    bytes: int | None
    timer: str | None
    seconds: float | None
    p50: float | None
    p95: float | None
    p95_now: float | None
    p95_before: float | None
    slower: bool
    rate: float | None


class RequestStats(Struct, kw_only=True):
    """HTTP requests to one endpoint with one status, from the timer ``http_request_duration``."""

    endpoint: str | None
    status: str | None
    requests: int
    seconds: float
    p50: float | None
    p95: float | None
    p99: float | None
    p95_now: float | None
    p95_before: float | None
    slower: bool


class MetricStats(Struct, kw_only=True):
    """One metric over the period; percentiles are null for counters. Timers are in seconds."""

    metric: str
    type: str | None
    count: int
    sum: float
    low: float | None
    high: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    p95_now: float | None
    p95_before: float | None


class Throughput(Struct, kw_only=True):
    """The events and records of one step, which begins at ``at`` and is as long as the report's ``step``."""

    at: datetime
    events: int
    errors: int
    records: int


class Outside(Struct, kw_only=True):
    """Events of the report's period outside of the time that charts show.

    ``side`` is ``before`` or ``after``; ``first`` and ``last`` are the times of the first and the last of these events.
    """

    side: str
    events: int
    errors: int
    records: int
    first: datetime
    last: datetime


class StageWaits(Struct, kw_only=True):
    """Seconds that one stage of pipes waited for its input (``read``) and its output (``write``)."""

    stage: str
    read: float
    write: float
    slow: str


class ChannelStats(Struct, kw_only=True):
    """Events of one channel and level; ``errors`` are those of level ERROR and CRITICAL."""

    channel: str | None
    level: str | None
    events: int
    errors: int
    first: datetime | None
    last: datetime | None


class BadLines(Struct, kw_only=True):
    """Invalid lines by reason; the first one is at byte ``offset`` of ``file``."""

    reason: str
    lines: int
    file: str | None
    offset: int | None


class Report(Struct, kw_only=True):
    """All numbers of the report.

    ``source`` is the kind of data: ``files``, ``events`` (the table) or ``rollups``. ``period`` is the time of all
    lists, null without events. ``compared`` are the two times that the health compares. ``duplicates`` counts events
    that were dropped because another one has their id. ``totals`` counts all ``failures``, ``runs``, ``failed_runs``
    and ``unknown_runs``, beyond the ``MOST_ROWS`` rows of a list. ``shown`` is the part of ``period`` that charts show,
    in the steps of ``throughput``: about the middle 99 % of the events and some time on either side; ``outside`` counts
    the other events. All other numbers are of the whole period.
    """

    version: str = VERSION
    made: datetime
    sources: list[str]
    source: str
    files: int | None
    conditions: list[str]
    period: Period | None
    compared: Comparison | None
    events: int
    errors: int
    quarantined: int
    duplicates: int = 0
    totals: dict[str, int]
    health: list[HealthStat]
    findings: list[HealthFinding]
    failures: list[Failure]
    runs: list[RunStats]
    step: float
    throughput: list[Throughput]
    shown: Period | None = None
    outside: list[Outside] = []
    streams: list[StreamSummary]
    requests: list[RequestStats]
    metrics: list[MetricStats]
    waiting: list[StageWaits]
    channels: list[ChannelStats]
    quarantine: list[BadLines]


def encode(report: Report) -> str:
    """Return a report as one formatted JSON document."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
