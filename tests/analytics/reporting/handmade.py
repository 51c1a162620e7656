"""A report made by hand, for tests of what shows it."""

from datetime import datetime, timedelta, timezone
from typing import Any

from balog.analytics.reporting import model as m
from balog.analytics.reporting.query import Comparison, Period

NOW = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
DAY = timedelta(days=1)
LAST_DAY, DAY_BEFORE = Period(NOW - DAY, NOW), Period(NOW - 2 * DAY, NOW - DAY)


def run(number: int = 0, **changes: Any) -> m.RunStats:
    values: dict[str, Any] = {
        "run_id": f"r{number}", "applications": ["tap"], "started": NOW - timedelta(minutes=number), "duration": 3.5,
        "outcome": "succeeded", "exit_code": 0, "problem": None, "records": 5, "bytes": 900, "events": 7, "errors": 0,
        "streams": [m.RunStreamStats(stream="users", records=5, bytes=890)], "failures": [],
    }  # fmt: skip
    return m.RunStats(**(values | changes))


def failure(number: int = 0, **changes: Any) -> m.Failure:
    values: dict[str, Any] = {
        "fingerprint": f"{number:016x}", "error_type": "RuntimeError", "message": "HTTP <n> from source",
        "level": "ERROR", "channels": ["a.b"], "applications": ["tap"], "events": 6, "now": 6, "before": 0,
        "first": NOW - timedelta(hours=2), "last": NOW, "new": True, "runs": ["r0"],
        "example": m.FailureExample(id="LG1", timestamp=NOW, run_id="r0", message="HTTP 500 from source"),
    }  # fmt: skip
    return m.Failure(**(values | changes))


def report(**changes: Any) -> m.Report:
    """Give a report with a little of everything."""
    shares = {"p50": 0.1, "p95": 0.5, "p99": 2.0, "p95_now": 0.6, "p95_before": 0.25}
    some = {name: shares[name] for name in ("p50", "p95", "p95_now", "p95_before")}
    values: dict[str, Any] = {
        "made": NOW, "sources": ["/data"], "source": "files", "files": 2, "conditions": [],
        "period": Period(NOW - 4 * DAY, NOW), "compared": Comparison(LAST_DAY, DAY_BEFORE),
        "events": 12, "errors": 2, "quarantined": 3,
        "totals": {"failures": 1, "runs": 3, "failed_runs": 0, "unknown_runs": 0},
        "health": [
            m.HealthStat(name="errors", unit="count", now=40, before=10, change=4.0, verdict="worse"),
            m.HealthStat(name="run time, p95", unit="seconds", now=3.5, before=7.0, change=0.5, verdict="better"),
        ],
        "findings": [m.HealthFinding(kind="new_failure", words="New: HTTP <n>, 6 times", since=NOW,
                                       link=f"f-{0:016x}")],
        "failures": [failure()], "runs": [run(0, failures=[f"{0:016x}"], errors=1), run(1), run(2)], "step": 3600.0,
        "throughput": [m.Throughput(at=NOW - timedelta(hours=n), events=6, errors=n, records=5) for n in (3, 1)],
        "streams": [m.StreamSummary(stream="users", applications=["tap"], records=5, bytes=890, timer="sync_duration",
                             seconds=1.5, slower=True, rate=3.3, **some)],
        "requests": [m.RequestStats(endpoint="/users", status="500", requests=17, seconds=1.5, slower=True, **shares)],
        "metrics": [m.MetricStats(metric="wait", type="timer", count=4, sum=1.5, low=0.1, high=2.0, **shares)],
        "waiting": [m.StageWaits(stage="broker", read=61.0, write=2.0, slow="before it")],
        "channels": [m.ChannelStats(channel="a.b", level=level, events=6, errors=0, first=NOW, last=NOW)
                     for level in ("INFO", None)],
        "quarantine": [m.BadLines(reason="$: not JSON", lines=3, file="/data/a.jsonl", offset=19)],
    }  # fmt: skip
    return m.Report(**(values | changes))
