"""The report as data: ``--json`` prints it, the page and the terminal show it.

Times are UTC, durations are in seconds, sizes in bytes. Totals of records and bytes beyond 64 bits are doubles. A sum
that is no finite double is null. ``schemas/report/1.0.0.json`` is generated from these classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from balog.analytics.reporting.query import Comparison, Period

VERSION = "1.0.0"
MOST_ROWS = 10_000
"""The longest list, so that neither the driver's memory nor the document grows with the archive."""

MOST_DETAILED = 200
"""How many runs, and how many failures, the report has in detail."""
MOST_LINES = 20
MOST_DAYS = 31
MOST_STREAM_RUNS = 10


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


class ErrorLine(Struct, kw_only=True):
    """The first error of a failure, channel, application and level in an hour; its message is not masked.

    ``events`` counts all of them in that hour, of any run.
    """

    at: datetime
    id: str | None
    run_id: str | None
    fingerprint: str
    level: str | None
    channel: str | None
    application: str | None
    message: str | None
    events: int


class FailureDay(Struct, kw_only=True):
    """The events of a failure on one day, which begins at ``day``."""

    day: datetime
    events: int


class Failure(Struct, kw_only=True):
    """Errors with the same fingerprint.

    ``events`` counts those in the report's period, ``now`` and ``before`` those in the two times compared. ``new`` is
    true if none was before ``now`` in all data. ``runs`` has some run ids. ``days`` are the latest ``MOST_DAYS`` of
    ``all_days`` with events, and ``lines`` some of the latest errors, both latest first. Only the first
    ``MOST_DETAILED`` failures have them.
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
    days: list[FailureDay] = []
    all_days: int = 0
    lines: list[ErrorLine] = []

    @property
    def prefix(self) -> str:
        """The error's type, to write before the message; "" if the message begins with it, as an uncaught error's."""
        kind = self.error_type or ""
        return "" if self.message.startswith(f"{kind}:") else kind


class RunStreamStats(Struct, kw_only=True):
    """The records and bytes of one stream in a run's own report."""

    stream: str
    records: int | None
    bytes: int | None


class RunPart(Struct, kw_only=True):
    """The events of one application in a run."""

    application: str | None
    first: datetime
    last: datetime
    events: int
    errors: int


class RunStats(Struct, kw_only=True):
    """One run.

    Without a report, ``outcome`` is ``unknown``; records, bytes and exit code are null; and the duration is the time
    between the first and the last event. ``ended`` is the time of the last event. ``failures`` are fingerprints.
    ``parts`` are its applications in the order of their first events, and ``lines`` are errors in order of time. Only
    the latest ``MOST_DETAILED`` runs have parts and lines.
    """

    run_id: str
    applications: list[str]
    started: datetime
    duration: float
    outcome: str
    exit_code: int | None
    problem: str | None
    records: int | float | None
    bytes: int | float | None
    events: int
    errors: int
    streams: list[RunStreamStats]
    failures: list[str] = []
    ended: datetime | None = None
    parts: list[RunPart] = []
    lines: list[ErrorLine] = []


class StreamRun(Struct, kw_only=True):
    """One stream in one run. ``duration`` is the run's, and ``rate`` is records per second of it."""

    run_id: str
    started: datetime
    duration: float
    outcome: str
    records: int | float | None
    bytes: int | float | None
    rate: float | None


class StreamSummary(Struct, kw_only=True):
    """The metrics of one stream.

    ``records`` adds up its applications: the counters of an application that counts it, the reports of the runs of
    others. ``seconds`` is the sum of its longest timer, ``timer``; ``p50`` and ``p95`` are of its values. ``rate`` is
    records per second of that sum, of the applications with that timer. ``slower`` is true only if there are enough
    values for a comparison. ``runs`` are the latest ``MOST_STREAM_RUNS`` of ``all_runs`` that reported the stream.
    ``succeeded`` is the end of the last run of all that succeeded, and ``age`` is the number of seconds from then until
    the report was made.
    """

    stream: str
    applications: list[str]
    records: int | float | None
    bytes: int | float | None
    timer: str | None
    seconds: float | None
    p50: float | None
    p95: float | None
    p95_now: float | None
    p95_before: float | None
    slower: bool
    rate: float | None
    runs: list[StreamRun] = []
    all_runs: int = 0
    succeeded: datetime | None = None
    age: float | None = None


class RequestStats(Struct, kw_only=True):
    """HTTP requests to one endpoint with one status, from the timer ``http_request_duration``."""

    endpoint: str | None
    status: str | None
    requests: int
    seconds: float | None
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
    sum: float | None
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
    records: int | float | None


class StageWaits(Struct, kw_only=True):
    """Seconds that one stage of pipes waited for its input (``read``) and its output (``write``)."""

    stage: str
    read: float | None
    write: float | None
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
    and ``unknown_runs``, beyond the ``MOST_ROWS`` rows of a list. ``step`` is that of ``throughput``, in seconds.
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
    streams: list[StreamSummary]
    requests: list[RequestStats]
    metrics: list[MetricStats]
    waiting: list[StageWaits]
    channels: list[ChannelStats]
    quarantine: list[BadLines]


_Kind = TypeVar("_Kind", bound=Struct)


def from_row(kind: type[_Kind], row: Mapping[str, Any], **more: Any) -> _Kind:
    """Return a struct of the columns of a row that are its fields, and of ``more``."""
    values = {**row, **more}
    return kind(**{name: values[name] for name in kind.__struct_fields__ if name in values})


def encode(document: Struct) -> str:
    """Return a report, or one run of it, as a formatted JSON document."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def finite(number: float | None) -> float | None:
    """Return a number; None if it is beyond the range of doubles or not a number."""
    return number if number is not None and math.isfinite(number) else None


def whole(number: float | Decimal | None) -> int | float | None:
    """Return a total without its fraction: as an ``int``, beyond 64 bits as a double; None if it is not finite."""
    if number is None or not math.isfinite(number):
        return None
    return int(number) if -(2**63) <= number < 2**63 else float(number)
