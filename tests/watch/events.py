"""Events as pipelines emit them, and the evaluation of monitors over them."""

from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from balog.event import Event
from balog.event.payload import AlertPayload
from balog.watch.config.config_check import find_semantic_problems
from balog.watch.config.monitors import MonitorConfig
from balog.watch.evaluation import Evaluation, TimedAlert

START = datetime(2026, 11, 23, 6, tzinfo=timezone.utc)  # a Monday


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def seconds(hours: float) -> float:
    return at(hours).timestamp()


def monitor(**fields: Any) -> MonitorConfig:
    made = msgspec.convert({"name": "m", **fields}, MonitorConfig)
    assert not find_semantic_problems([made])
    return made


def run(
    hours: float,
    pipeline: str = "tap-shop",
    outcome: str = "succeeded",
    streams: dict[str, int] | None = None,
    run_id: str | None = None,
    **more: Any,
) -> Event:
    counts = [{"stream": name, "records": count, "bytes": count * 100} for name, count in (streams or {}).items()]
    payload = {
        "cls_type": "run",
        "outcome": outcome,
        "duration": 60.0,
        "exit_code": 0 if outcome == "succeeded" else 1,
        "command": pipeline,
        "records": sum((streams or {}).values()),
        "streams": counts,
        **more,
    }
    context = {"application": pipeline, "run_id": run_id or f"run-{hours:g}"}
    level: Any = "INFO" if outcome == "succeeded" else "ERROR"
    return Event.new(f"{pipeline}.run", payload, level=level, context=context, timestamp=at(hours))


def event(hours: float, payload: dict[str, Any], pipeline: str = "tap-shop", level: Any = "INFO") -> Event:
    return Event.new("c", payload, level=level, context={"application": pipeline}, timestamp=at(hours))


def evaluate(monitors: list[MonitorConfig], events: list[Event], until: float | None = None) -> list[AlertPayload]:
    evaluation, alerts = Evaluation(monitors), list[TimedAlert]()
    for one in events:
        alerts += evaluation.take(one)
    alerts += evaluation.advance(seconds(until)) if until is not None else []
    return [timed.payload for timed in alerts]


def states(alerts: list[AlertPayload]) -> list[tuple[str, str, float]]:
    """Return series, state and hour of each alert."""
    return [
        (
            ",".join(value for name, value in alert.labels.items()),
            alert.state,
            (datetime.fromisoformat(alert.since.replace("Z", "+00:00")) - START).total_seconds() / 3600,
        )
        for alert in alerts
    ]
