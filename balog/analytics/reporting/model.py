"""The report as data: what ``--json`` prints, and what the page and the terminal show.

Times are UTC, durations are in seconds, sizes in bytes. ``schemas/report/1.0.0.json`` is made of these.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from balog.analytics.reporting.periods import Comparison, Period

__all__ = [
    "MOST_ROWS",
    "VERSION",
    "BadLines",
    "ChannelStats",
    "Failure",
    "FailureExample",
    "HealthFinding",
    "HealthStat",
    "MetricStats",
    "Outside",
    "Report",
    "RequestStats",
    "RunStats",
    "RunStreamStats",
    "StageWaits",
    "StreamSummary",
    "Throughput",
    "encode",
]

VERSION = "1.0.0"
MOST_ROWS = 10_000
"""Rows of each list at most, so that neither the driver's memory nor the document grows with the archive."""


class HealthStat(Struct, kw_only=True):
    """One number of the health: of the time that is looked at, and of the time before.

    ``unit`` is ``count`` or ``seconds``. ``change`` is now / before, null where either is nothing. ``verdict`` is
    ``better``, ``worse``, ``same``, or ``unknown`` where there is nothing to compare or neither way is good.
    """

    name: str
    unit: str
    now: float | None
    before: float | None
    change: float | None
    verdict: str


class HealthFinding(Struct, kw_only=True):
    """Something that is worth a look: ``kind`` is ``new_failure``, ``more_failures``, ``failed_runs``, ``slower``,
    ``silent`` or ``bad_lines``; ``since`` is when it began, where that is known; ``link`` is the page's anchor.
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
    """Errors of one fingerprint. ``events`` are those of the report's period, ``now`` and ``before`` those of the two
    times compared; ``new`` says that it was not seen before ``now`` in all that was read; ``runs`` holds a few of them.
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
    """What a run's own report says of one stream."""

    stream: str
    records: int | None
    bytes: int | None


class RunStats(Struct, kw_only=True):
    """One run. ``outcome`` is ``unknown``, and records, bytes and exit code are null, when it left no report; its
    duration is then the time between its first and its last event. ``failures`` are fingerprints.
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
    """One stream by its metrics: ``seconds`` is the sum of its timers, ``p50`` and ``p95`` are of the longest of them
    (``timer``), ``rate`` is records per second of that sum. ``slower`` says that enough values stand behind the change.
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
    """HTTP requests to one endpoint with one status, by the timer ``http_request_duration``."""

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
    """What passed in the time from ``at`` on, as long as the report's ``step``."""

    at: datetime
    events: int
    errors: int
    records: int


class Outside(Struct, kw_only=True):
    """Events of the report's period outside of the time that the charts show. ``side`` is ``before`` or ``after`` it;
    ``first`` and ``last`` are the times of the first and the last of these events.
    """

    side: str
    events: int
    errors: int
    records: int
    first: datetime
    last: datetime


class StageWaits(Struct, kw_only=True):
    """Seconds that one stage of pipes waited for what stands before it (``read``) and behind it (``write``)."""

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
    """Lines that are not events, by what is wrong with them; the first begins at byte ``offset`` of ``file``."""

    reason: str
    lines: int
    file: str | None
    offset: int | None


class Report(Struct, kw_only=True):
    """All numbers of the report.

    ``source`` is what was asked: ``files``, ``events`` (the table) or ``rollups``. ``period`` is what all lists are
    about; null when there is no event. ``compared`` are the two times that the health compares. ``duplicates`` are
    events that were left out, since another one has their id. ``totals`` counts what lists that hold ``MOST_ROWS`` rows
    at most do not show: ``failures``, ``runs``, ``failed_runs``, ``unknown_runs``. ``shown`` is the part of ``period``
    that charts show and that ``throughput`` has steps of: about the middle 99 % of the events and some time on either
    side; ``outside`` counts the other events. All other numbers are of the whole period.
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
    """Write a report as one JSON document, laid out for people."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
