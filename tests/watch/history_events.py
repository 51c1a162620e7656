"""Ninety days of events of a few pipelines, with faults in them: the same for the same seed."""

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from balog.watch.config.monitors import MonitorConfig
from tests.watch.events import monitor

BEGIN = datetime(2026, 8, 1, tzinfo=timezone.utc)
DAYS = 90

_Timed = tuple[datetime, dict[str, Any]]


def monitors() -> list[MonitorConfig]:
    """One of each kind that events answer for."""
    return [
        monitor(name="late", pipeline=["tap-shop", "tap-crm", "tap-never"], freshness={"every": "3h", "grace": "30m"}),
        monitor(name="thin", timezone="Europe/Berlin", volume={"seasonality": "hour_of_day"}),
        monitor(name="slow", duration={"p95_over": "3x", "over": "1h"}, resolve_after="2h", **{"for": "1h"}),
        monitor(name="fail", failures={"new_fingerprint": True, "rate_over": "30%", "within": "12h", "min_runs": 3}),
        monitor(name="rejected", quarantine={"share_over": "2%"}),
        monitor(name="moved", schema={"breaking": "critical"}),
        monitor(name="stuck", state={"unchanged_runs": 5}, no_data="12h"),
        monitor(name="retries", metric="http_*", threshold={"over": 20, "within": "4h"}, where="level = 'INFO'"),
    ]


def lines(seed: int, every: float = 3.0, days: int = DAYS) -> list[str]:
    """Return the events as lines, in the order of their times.

    Args:
        every: hours between two runs of a pipeline.
    """
    chance = random.Random(seed)
    made: list[_Timed] = []
    for pipeline in ("tap-shop", "tap-crm", "tap-pay"):
        made += _pipeline(pipeline, chance, int(days * 24 / every), every)
    for day, match in ((days // 4, "thin"), (days // 2, "late*")):
        until = (BEGIN + timedelta(days=day + 3)).isoformat()
        silence = {"cls_type": "alert_silence", "match": match, "until": until, "why": "planned", "by": "ana"}
        made.append((BEGIN + timedelta(days=day), _header("watch", "run-0", "INFO") | {"payload": silence}))
    found = []
    for number, (when, event) in enumerate(sorted(made, key=lambda one: one[0])):
        event["header"] |= {"id": f"LG{number:022d}", "timestamp": when.isoformat().replace("+00:00", "Z")}
        found.append(json.dumps({"schema": "0.1.0", **event}))
    return found


def _pipeline(pipeline: str, chance: random.Random, steps: int, every: float) -> Iterator[_Timed]:
    columns, bookmark, gap = 3, 0, 0
    for step in range(steps):
        when = BEGIN + timedelta(
            hours=step * every, seconds=chance.randrange(600), microseconds=chance.randrange(10**6)
        )
        gap = gap - 1 if gap else chance.choice([0] * 150 + [4])
        if gap:
            continue
        run = f"{pipeline}-{step}"
        fault = chance.choice([""] * 30 + ["failed", "zero", "half", "slow", "rejected", "error", "retries", "column"])
        columns += fault == "column"
        bookmark += chance.random() > 0.2
        orders = 1000 + 800 * (8 <= when.hour < 20) + chance.randrange(-40, 40)
        orders = {"zero": 0, "half": orders // 2}.get(fault, orders)
        report = {
            "cls_type": "run",
            "outcome": "failed" if fault == "failed" else "succeeded",
            "duration": (7200.0 if fault == "slow" else 60.0) + chance.randrange(60) / 4,
            "exit_code": int(fault == "failed"),
            "command": pipeline,
            "records": orders,
            "junk": orders // 10 if fault == "rejected" else 0,
            "streams": [{"stream": "orders", "records": orders, "bytes": orders * 80}],
            "state": {"bookmarks": {"orders": {"id": bookmark}}},
        }
        schema = {"type": "object", "properties": {f"c{one}": {"type": "string"} for one in range(columns)}}
        yield (
            when,
            _header(pipeline, run, "INFO")
            | {
                "payload": {"cls_type": "stream_schema", "stream": "orders", "schema": schema, "key_properties": ["c0"]}
            },
        )
        value = 25 if fault == "retries" else 1
        metric = {"cls_type": "metric", "type": "counter", "metric": "http_retries", "value": value}
        yield when + timedelta(seconds=20), _header(pipeline, run, "INFO") | {"payload": metric}
        if fault in ("error", "failed"):
            names = ["Timeout", "Refused", f"Odd{step}"]
            error = {"cls_type": "log", "message": f"{chance.choice(names)} after {step} s"}
            yield when + timedelta(seconds=40), _header(pipeline, run, "ERROR") | {"payload": error}
        level = "ERROR" if fault == "failed" else "INFO"
        yield when + timedelta(seconds=60), _header(pipeline, run, level) | {"payload": report}


def _header(application: str, run: str, level: str) -> dict[str, Any]:
    context = {"application": application, "run_id": run}
    return {"header": {"channel": f"{application}.run", "level": level, "composition": False, "context": context}}
