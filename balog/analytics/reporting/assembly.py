"""Assembles a report from the rows of queries: ordered lists, health and findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from balog.analytics.reporting import comparison, model
from balog.analytics.reporting.model import finite, whole
from balog.analytics.reporting.queries import NO_DETAILS, REQUESTS, WAITS, Details, Rows, grouped
from balog.analytics.reporting.query import TimeRanges
from balog.ui.formats import count, printable

_MOST_FINDINGS = 5  # of a kind

Row = Mapping[str, Any]


class Slow(NamedTuple):
    """A metric that became slower: its description, its key, and its row."""

    what: str
    metric: str
    stream: str | None
    endpoint: str | None
    row: Row


def slowed(rows: Rows) -> list[Slow]:
    """Return the timers of streams, and the endpoints, that became slower, in the order of the time lost."""
    timers = []
    for row in rows["metrics"]:
        timed = row["type"] == "timer" and comparison.is_slower(row)
        if timed and row["grouping"] == "stream":
            timers.append(Slow(f"{row['metric']} of {row['stream']}", row["metric"], row["stream"], None, row))
        elif timed and row["grouping"] == "endpoint" and row["endpoint"] is not None:
            timers.append(Slow(f"requests to {row['endpoint']}", row["metric"], None, row["endpoint"], row))
        elif timed and row["grouping"] == "metric" and row["metric"] != REQUESTS:
            timers.append(Slow(row["metric"], row["metric"], None, None, row))
    by_stream = {slow.metric for slow in timers if slow.stream is not None}
    timers = [slow for slow in timers if slow.stream or slow.endpoint or slow.metric not in by_stream]
    timers.sort(key=lambda slow: (slow.row["p95_before"] - slow.row["p95_now"]) * slow.row["count_now"])
    return timers[:_MOST_FINDINGS]


def assemble(
    rows: Rows, ranges: TimeRanges, made: datetime, hourly: Sequence[Row] = (), details: Details = NO_DETAILS
) -> dict[str, Any]:
    """Return the lists, totals, health and findings of a report, by field name.

    Args:
        rows: the result of ``queries.ask``.
        ranges: the time ranges of the rows.
        made: when the report is made.
        hourly: the result of ``queries.hourly`` for ``slowed``.
        details: of the first runs and failures.
    """
    failures = [_failure(row, ranges, details) for row in ordered_failures(rows, ranges)]
    runs = _runs(rows["runs"], failures, details)
    throughput, records = _throughput(rows)
    of_all = [row for row in rows["outcomes"] if row["grouping"] == 3]
    outcomes = {row["outcome"]: row for row in rows["outcomes"] if row["grouping"] == 2}
    totals = {
        "failures": sum(row["count"] for row in rows["all_failures"]),
        "runs": sum(row["runs"] or 0 for row in of_all),
        "failed_runs": _of(outcomes.get("failed"), "runs"),
        "unknown_runs": _of(outcomes.get("unknown"), "runs"),
    }
    health = _health(rows, ranges, of_all[0] if of_all else {}, outcomes, records, failures)
    return {
        "events": sum(row["events"] for row in rows["throughput"]),
        "errors": sum(row["errors"] for row in rows["throughput"]),
        "quarantined": sum(row["lines"] for row in rows["quarantine"]),
        "totals": totals,
        "health": health,
        "findings": _findings(rows, failures, hourly) if ranges.compared.before is not None else [],
        "failures": failures,
        "runs": runs,
        "step": ranges.step[1].total_seconds(),
        "throughput": throughput,
        "streams": _streams(rows, made),
        "requests": [_request(row) for row in rows["metrics"] if row["grouping"] == "request" and row["count"]],
        "metrics": _metrics(rows),
        "waiting": _waiting(rows),
        "channels": _channels(rows["channels"]),
        "quarantine": [model.from_row(model.BadLines, row) for row in rows["quarantine"]],
    }


def _of(row: Row | None, name: str) -> int:
    return int(row[name] or 0) if row else 0


# -- lists --------------------------------------------------------------------------------------------------------


def ordered_failures(rows: Rows, ranges: TimeRanges) -> list[Row]:
    """Return the rows of failures, new ones first."""
    return sorted(rows["failures"], key=lambda row: (not _is_new(row, ranges), -row["events_now"], -row["events"]))


def _is_new(row: Row, ranges: TimeRanges) -> bool:
    """Return whether a failure began now; without a time before, none is new."""
    now = ranges.compared.now
    return ranges.compared.before is not None and now.since <= row["first"] < now.until


def _failure(row: Row, ranges: TimeRanges, details: Details) -> model.Failure:
    example = model.from_row(model.FailureExample, row["example"]) if row["example"] else None
    days = details.days.get(row["fingerprint"], [])
    return model.from_row(
        model.Failure, row, message=row["message"] or "", now=row["events_now"], before=row["events_before"],
        new=_is_new(row, ranges), example=example, days=[model.from_row(model.FailureDay, day) for day in days],
        all_days=days[0]["days"] if days else 0, lines=_lines(details.latest.get(row["fingerprint"], [])),
    )  # fmt: skip


def _lines(rows: Iterable[Row]) -> list[model.ErrorLine]:
    return [model.from_row(model.ErrorLine, row) for row in rows]


def _runs(rows: Iterable[Row], failures: Sequence[model.Failure], details: Details) -> list[model.RunStats]:
    of_run: dict[str, list[str]] = defaultdict(list)
    for failure in failures:
        for run_id in failure.runs:
            of_run[run_id].append(failure.fingerprint)
    runs = []
    for row in rows:
        streams = [model.from_row(model.RunStreamStats, part) for part in row["streams"] if part["stream"] is not None]
        sums = {name: whole(row[name]) for name in ("records", "bytes")}
        parts = [model.from_row(model.RunPart, part) for part in details.parts.get(row["run_id"], [])]
        lines = _lines(details.lines.get(row["run_id"], []))
        fingerprints = list(dict.fromkeys([*of_run[row["run_id"]], *(line.fingerprint for line in lines)]))
        own = {**sums, "streams": streams, "failures": fingerprints, "parts": parts, "lines": lines}
        runs.append(model.from_row(model.RunStats, row, **own))
    return runs


def _throughput(rows: Rows) -> tuple[list[model.Throughput], dict[str, float | None]]:
    """Return the steps, and the records of the two times compared."""
    records = {row["at"]: row["records"] or 0.0 for row in rows["records"]}
    steps = [
        model.from_row(model.Throughput, row, records=whole(records.get(row["at"], 0.0)))
        for row in rows["throughput"]
        if row["events"]
    ]
    spans = {name: finite(sum(row[f"records_{name}"] or 0.0 for row in rows["records"])) for name in ("now", "before")}
    return steps, spans


def _streams(rows: Rows, made: datetime) -> list[model.StreamSummary]:
    runs_by_stream = grouped(rows["stream_runs"], "stream")
    volumes = {(row["stream"], row["timer"]): row for row in rows["streams"]}
    metrics: dict[str, list[Row]] = defaultdict(list)
    for row in rows["metrics"]:
        if row["grouping"] == "stream" and row["count"]:
            metrics[row["stream"]].append(row)
    summaries = []
    for name in dict.fromkeys([*metrics, *(stream for stream, _ in volumes)]):
        own, volume = metrics.get(name, []), volumes.get((name, None))
        timers = sorted((row for row in own if row["type"] == "timer"), key=lambda row: -row["sum"])
        timer = timers[0] if timers else {}
        spent = finite(timer.get("sum"))
        timed = _records(volumes.get((name, timer.get("metric"))))
        applications = {app for row in [*own, *([volume] if volume else [])] for app in row["applications"]}
        runs = runs_by_stream.get(name, [])
        succeeded = runs[0]["succeeded"] if runs else None
        summaries.append(model.from_row(
            model.StreamSummary, {name: timer.get(name) for name in ("p50", "p95", "p95_now", "p95_before")},
            stream=name, applications=sorted(applications), records=_records(volume),
            bytes=whole(volume["bytes"]) if volume else None, timer=timer.get("metric"), seconds=spent,
            slower=comparison.is_slower(timer), rate=finite(timed / spent) if timed is not None and spent else None,
            runs=list(map(_stream_run, runs)), all_runs=runs[0]["runs"] if runs else 0, succeeded=succeeded,
            age=None if succeeded is None else max((made - succeeded).total_seconds(), 0.0),
        ))  # fmt: skip
    return sorted(summaries, key=lambda summary: (-(summary.seconds or 0), -(summary.records or 0), summary.stream))


def _stream_run(row: Row) -> model.StreamRun:
    records, duration = whole(row["records"]), row["duration"]
    rate = records / duration if records is not None and duration > 0 else None
    return model.from_row(model.StreamRun, row, records=records, bytes=whole(row["bytes"]), rate=rate)


def _records(row: Row | None) -> int | float | None:
    """Return the records of a stream: of the runs with counters, and of the others, from their reports."""
    counted, reported = (row["counted"], row["reported"]) if row else (None, None)
    return whole(reported) if counted is None else whole(Decimal(counted) + (reported or 0))


def _request(row: Row) -> model.RequestStats:
    slower = comparison.is_slower(row)
    return model.from_row(model.RequestStats, row, requests=row["count"], seconds=finite(row["sum"]), slower=slower)


def _metrics(rows: Rows) -> list[model.MetricStats]:
    metric_rows = [row for row in rows["metrics"] if row["grouping"] == "metric" and row["count"]]
    metrics = [model.from_row(model.MetricStats, row, sum=finite(row["sum"])) for row in metric_rows]
    return sorted(metrics, key=lambda metric: (metric.metric, metric.type or ""))


def _waiting(rows: Rows) -> list[model.StageWaits]:
    waits: dict[str, dict[str, float]] = defaultdict(lambda: {"read": 0.0, "write": 0.0})
    for row in rows["metrics"]:
        if row["grouping"] == "stage" and row["metric"] in WAITS and row["count"]:
            waits[row["stage"]][WAITS[row["metric"]]] += row["sum"]
    stages = []
    for stage, wait in waits.items():
        read, write = wait["read"], wait["write"]
        slow = "neither" if max(read, write) < 1.5 * min(read, write) or not read + write else "before it"
        stages.append(
            model.StageWaits(stage=stage, slow="behind it" if slow != "neither" and write > read else slow,
                             read=finite(read), write=finite(write))
        )  # fmt: skip
    return sorted(stages, key=lambda stats: (-((stats.read or 0) + (stats.write or 0)), stats.stage))


def _channels(rows: Iterable[Row]) -> list[model.ChannelStats]:
    channels = [model.from_row(model.ChannelStats, row) for row in rows if row["events"]]
    return sorted(channels, key=lambda stats: (stats.channel or "", stats.level or ""))


# -- now against before -------------------------------------------------------------------------------------------


def _health(
    rows: Rows,
    ranges: TimeRanges,
    runs: Row,
    outcomes: Mapping[str, Row],
    records: Row,
    failures: Sequence[model.Failure],
) -> list[model.HealthStat]:
    some = ranges.compared.before is not None

    def pair(stat_rows: Iterable[Row], name: str) -> tuple[float, float | None]:
        stat_rows = list(stat_rows)
        now, before = (sum(row[f"{name}_{span}"] or 0 for row in stat_rows) for span in ("now", "before"))
        return now, before if some else None

    requests = [row for row in rows["metrics"] if row["grouping"] == "metric" and row["metric"] == REQUESTS]
    failed = [outcomes["failed"]] if "failed" in outcomes else []
    stats = [
        comparison.counted("events", *pair(rows["throughput"], "events"), good=""),
        comparison.counted("errors", *pair(rows["throughput"], "errors"), good="less"),
        comparison.counted("runs", *pair([runs] if runs else [], "runs"), good=""),
        comparison.counted("failed runs", *pair(failed, "runs"), good="less"),
        comparison.counted("records", records["now"], records["before"] if some else None, good=""),
        comparison.timed("run time, p95", {**runs, **{f"count_{s}": runs.get(f"runs_{s}") for s in ("now", "before")}}),
        comparison.timed("request time, p95", requests[0] if requests else {}),
        comparison.counted("new failures", sum(failure.new for failure in failures), None, good="less"),
    ]
    return stats if some else stats[:-1]


def _findings(rows: Rows, failures: Sequence[model.Failure], hourly: Sequence[Row]) -> list[model.HealthFinding]:
    of_runs, worse = _failed_runs(rows["outcomes"]), _worse_failures(failures)
    return [*of_runs, *worse, *_slower(rows, hourly), *_silent(rows["applications"]), *_bad_lines(rows["quarantine"])]


def _failed_runs(outcomes: Sequence[Row]) -> Iterable[model.HealthFinding]:
    """Yield findings for applications of which more runs failed than before, or most runs failed."""
    of_all = {row["names"]: row for row in outcomes if row["grouping"] == 1}
    failed = [row for row in outcomes if row["grouping"] == 0 and row["outcome"] == "failed" and row["runs_now"]]
    reported = 0
    for row in sorted(failed, key=lambda row: -row["runs_now"]):
        now, before = _of(row, "runs_now"), _of(row, "runs_before")
        every, earlier = (_of(of_all[row["names"]], name) for name in ("runs_now", "runs_before"))
        if reported < _MOST_FINDINGS and (now > before or 2 * now > every):
            reported += 1
            past = f"{count(before)} of {count(earlier)} before" if earlier else "no run before"
            name = printable(row["names"] or "without an application")
            words = f"{name}: {count(now)} of {count(every)} runs failed; {past}"
            yield model.HealthFinding(kind="failed_runs", words=words, link="runs")


def _worse_failures(failures: Sequence[model.Failure]) -> Iterable[model.HealthFinding]:
    new = [failure for failure in failures if failure.new and failure.now]
    more = [failure for failure in failures if not failure.new and comparison.is_more(failure.now, failure.before)]
    for kind, group in (("new_failure", new), ("more_failures", more)):
        for error in sorted(group, key=lambda error: -error.now)[:_MOST_FINDINGS]:
            name = printable(error.message or error.error_type)[:100]
            times = "once" if error.now == 1 else f"{count(error.now)} times"
            words = (
                f"New: {name}, {times}" if error.new else f"More often: {name}, {times}, {count(error.before)} before"
            )
            yield model.HealthFinding(
                kind=kind, words=words, since=error.first if error.new else None, link=f"f-{error.fingerprint}"
            )


def _slower(rows: Rows, hourly: Sequence[Row]) -> Iterable[model.HealthFinding]:
    for slow in slowed(rows):
        now, before = slow.row["p95_now"], slow.row["p95_before"]
        key = slow.metric, slow.stream, slow.endpoint
        hours = [row for row in hourly if (row["metric"], row["stream"], row["endpoint"]) == key]
        since = comparison.since_when(hours, now, before)
        words = f"Slower: {comparison.slower_in_words(printable(slow.what), now, before)}"
        link = "streams" if slow.stream else "requests" if slow.endpoint else "metrics"
        yield model.HealthFinding(kind="slower", words=words, since=since, link=link)


def _silent(applications: Sequence[Row]) -> Iterable[model.HealthFinding]:
    silent = [row for row in applications if row["events_before"] and not row["events_now"]]
    for row in sorted(silent, key=lambda row: -row["events_before"])[:_MOST_FINDINGS]:
        words = f"Silent: {printable(row['application'])} sent no event, {count(row['events_before'])} before"
        yield model.HealthFinding(kind="silent", words=words, since=row["last"], link="channels")


def _bad_lines(quarantine: Sequence[Row]) -> Iterable[model.HealthFinding]:
    lines = sum(row["lines"] for row in quarantine)
    if lines:
        noun = "line was" if lines == 1 else "lines were"
        yield model.HealthFinding(kind="bad_lines", words=f"{count(lines)} {noun} no event", link="quarantine")
