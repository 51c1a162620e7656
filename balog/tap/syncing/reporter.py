"""The reporter of a run: log lines when streams start and end, metrics, and the report at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

import balog
from balog.event import format_timestamp
from balog.event.payload import RunPayload, StreamCount
from balog.log import configuration, metrics
from balog.log.metrics.ticker import Ticker
from balog.log.outputs.stdio import StderrOutput
from balog.tap.errors import SyncError
from balog.tap.streams import Stream
from balog.tap.syncing.session import Observer, SyncStats

_ticker = Ticker("balog tap")


class Reporter(Observer):
    """Reports a sync through balog's logger, whose configuration decides where that goes.

    - ``log`` events at INFO when the tap and each stream start and end.
    - ``metric`` events with the names of singer-python: ``record_count`` by stream (``endpoint``), as deltas, at least
      each minute while records come; ``job_duration`` of each stream in seconds, with its status.
    - One ``run`` event at the end, with rows by stream: written, new, updated, quarantined, and why a stream failed.
      ``balog run`` includes it in its own.

    Args:
        name: the tap's name, ``tap-cool``.
        version: the version of its distribution; "" if it has none.
    """

    def __init__(self, name: str, version: str = "") -> None:
        self._name = name
        self._version = version
        self._log = balog.get_logger(name)
        self._streams: dict[str, _StreamMetrics] = {}
        self._started_at, self._started_ns = time.monotonic(), time.time_ns()

    def begin(self, selected: Sequence[str], resumed: str | None = None) -> None:
        """Log that the tap starts.

        Args:
            selected: the streams that will be synced.
            resumed: the one at which the previous run was interrupted.
        """
        fields: dict[str, Any] = {"streams": list(selected)}
        if resumed is not None:
            fields["resumed_at"] = resumed
        self._log.info("Starting {}", f"{self._name} {self._version}".rstrip(), **fields)

    def started(self, stream: Stream, stats: SyncStats) -> None:
        """Log that a stream starts, and start its metrics."""
        self._log.info("Starting sync of stream {}", stream.name, method=stream.method)
        self._streams[stream.name] = _StreamMetrics(stream.name, stats)

    def ended(self, stream: Stream, stats: SyncStats, error: SyncError | None) -> None:
        """Log the number of records and the time of a stream."""
        stream_metrics = self._streams[stream.name]
        stream_metrics.end(None if error is None else error.reason)
        result = f"Finished sync of stream {stream.name}" if error is None else f"Sync of stream {stream.name} failed"
        records = stats.records
        self._log.info("{}: {:,} records in {:.1f} s", result, records, stream_metrics.seconds, records=records)

    def finish(self, exit_code: int, problem: str = "", failures: Sequence[SyncError] = ()) -> None:
        """Write the report.

        Args:
            exit_code: the exit code of the process.
            problem: why the run failed, if that was not because of a stream.
            failures: streams that failed, including those that never started.
        """
        for stream_metrics in self._streams.values():
            stream_metrics.end("interrupted" if exit_code else None)
        metrics.flush()  # the report comes last
        counts = [stream_metrics.count() for stream_metrics in self._streams.values()]
        problems = {count.stream: count.problem for count in counts if count.problem is not UNSET}
        problems |= {failure.stream: failure.reason for failure in failures if failure.stream not in problems}
        failed = "; ".join(f"{stream}: {reason}" for stream, reason in problems.items())
        report = RunPayload(
            outcome="failed" if exit_code else "succeeded",
            duration=round(time.monotonic() - self._started_at, 6),
            exit_code=exit_code,
            command=self._name,
            started=format_timestamp(self._started_ns),
            ended=format_timestamp(time.time_ns()),
            streams=counts,
            records=sum(count.records for count in counts),
            problem=problem or failed or UNSET,
        )
        if _is_wanted():
            (self._log.error if exit_code else self._log.info)("run", payload=msgspec.to_builtins(report))


class _StreamMetrics:
    """The metrics of one stream: its rows, written at least each minute, and its time in seconds."""

    def __init__(self, name: str, stats: SyncStats) -> None:
        self.name = name
        self.stats = stats
        self.problem: str | None = None
        self.seconds = 0.0
        self._counted = 0
        self._is_over = False
        self._counter = metrics.record_counter(name).__enter__()
        self._timer = metrics.job_timer(f"sync_{name}").start()
        self._due = 0.0
        self.flush()

    def due(self) -> float:
        """Return when the rows are added to the metric next."""
        return self._due

    def flush(self) -> None:
        """Add the rows since the last time to the metric, and schedule the next call."""
        if self._is_over:
            return
        self._add()
        self._counter.flush()
        self._due = time.monotonic() + metrics.DEFAULT_LOG_INTERVAL
        _ticker.watch(self)

    def end(self, problem: str | None) -> None:
        """Write the metrics. The second call does nothing."""
        if self._is_over:
            return
        self._is_over = True
        self.problem = problem
        self._add()
        self._counter.__exit__(None, None, None)
        self.seconds = self._timer.stop(metrics.Status.succeeded if problem is None else metrics.Status.failed)

    def count(self) -> StreamCount:
        """Return its part of the report."""
        stats = self.stats
        return StreamCount(
            stream=self.name,
            records=stats.records,
            new=UNSET if stats.new is None else stats.new,
            updated=UNSET if stats.updated is None else stats.updated,
            quarantined=stats.quarantined or UNSET,
            problem=UNSET if self.problem is None else self.problem,
        )

    def _add(self) -> None:
        now = self.stats.records
        if now != self._counted:
            self._counter.increment(now - self._counted)
            self._counted = now


def _is_wanted() -> bool:
    """Return whether the report is an event of its own.

    ``balog run`` reports the run itself, and includes this report if it comes on stderr. Otherwise the run would be
    counted twice.
    """
    if not os.environ.get("BALOG_SIDECAR"):
        return True
    return any(isinstance(route.output, StderrOutput) for route in configuration.state.current().routes)
