"""Rules of log lines and metrics, which show operators the progress of a tap."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from balog.verify.rules.registration import BEST_PRACTICES, METRICS, PRACTICE, Violation, check
from balog.verify.rules.selection import require_output
from balog.verify.trials import Skip, SyncRun, Trials

__all__: list[str] = []

_HTTP = re.compile("https?://")


def _with_records(trials: Trials) -> SyncRun:
    run = require_output(trials.sync)
    if not run.output.records:
        raise Skip("no records came")
    return run


@check(
    "streams-are-named", "telling", "warning", 2, BEST_PRACTICES,
    "Log a line with the stream's name when it starts and when it ends.",
)  # fmt: skip
def streams_are_named(trials: Trials) -> Iterator[Violation]:
    """Log lines name each synced stream."""
    output = _with_records(trials).output
    for name, stream in output.streams.items():
        if stream.records and not output.logs.mentions(name):
            yield Violation("no log line names it", name)


@check(
    "records-are-counted", "telling", "advice", 2, METRICS,
    "Log METRIC lines of type counter, metric record_count, with the stream in the tag `endpoint` or `stream`.",
)  # fmt: skip
def records_are_counted(trials: Trials) -> Iterator[Violation]:
    """The tap logs the metric ``record_count``."""
    output = _with_records(trials).output
    if not output.logs.metrics["record_count"]:
        yield Violation("no such metric")


@check(
    "counts-are-right", "telling", "warning", 3, METRICS,
    "Count each written record once in its stream's counter, and log the remainder at the end.",
)  # fmt: skip
def counts_are_right(trials: Trials) -> Iterator[Violation]:
    """The sum of ``record_count`` equals the number of written records."""
    run = _with_records(trials)
    counted = run.output.logs.counted
    if not counted:
        raise Skip("no record_count was logged")
    if not run.is_whole:
        raise Skip("the run was not complete")
    named = [name for name, stream in run.output.streams.items() if stream.records and name in counted]
    for name in named:
        if counted[name] != run.output.streams[name].records:
            yield Violation(f"{counted[name]} counted, {run.output.streams[name].records} written", name)
    if not named and counted.total() != run.output.records:
        yield Violation(f"{counted.total()} counted, {run.output.records} written")


@check(
    "requests-are-timed", "telling", "advice", 1, METRICS,
    "Log METRIC lines of type timer, metric http_request_duration, for each request.",
)  # fmt: skip
def requests_are_timed(trials: Trials) -> Iterator[Violation]:
    """A tap of an HTTP source logs the duration of its requests."""
    logs = _with_records(trials).output.logs
    if any("http" in name or "request" in name for name in logs.metrics):
        return
    if not any(map(_HTTP.search, (json.dumps(trials.config), *logs.excerpts))):
        raise Skip("nothing shows that its source uses HTTP")
    yield Violation("no timer of requests")


@check(
    "logs-are-bounded", "telling", "warning", 2, PRACTICE,
    "Log the progress of streams, not single records: a log line costs more than a record.",
)  # fmt: skip
def logs_are_bounded(trials: Trials) -> Iterator[Violation]:
    """The tap's logs are smaller than its output."""
    output = _with_records(trials).output
    logged, written = output.logs.bytes, sum(stream.bytes for stream in output.streams.values())
    lines = output.logs.lines - sum(output.logs.metrics.values())  # metrics are asked for, one a request
    if lines > max(output.records, 200) or logged > max(written, 1024 * 1024):
        yield Violation(
            f"{lines} lines besides metrics, {logged / 1e6:.1f} MB on stderr "
            f"for {output.records} records, {written / 1e6:.1f} MB"
        )
