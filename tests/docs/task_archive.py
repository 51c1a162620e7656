"""An archive of three weeks of a shop's nightly sync, for the pages whose commands ask for events."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

DAYS = 21
THIN = 10
"""The night that has 40 records, where others have about 100."""

FAILURE = {
    "type": "ConnectionError",
    "message": "HTTP 503 from https://shop.example/orders?page=7",
    "frames": [{"file": "tap_shop/client.py", "line": 41, "function": "get_page"}],
}


def write_archive(folder: Path, now: datetime | None = None) -> None:
    """Write ``archive/date=…/events.jsonl``: a run each night up to two hours ago, of which the last one failed.

    The last file has one line that is not an event.
    """
    last = (now or datetime.now(timezone.utc)).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    for day in range(DAYS):
        begun = last - timedelta(days=DAYS - 1 - day)
        path = folder / "archive" / f"date={begun:%Y-%m-%d}" / "events.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = list(_night(begun, day, day == DAYS - 1))
        path.write_text("".join(lines), encoding="utf-8")


def _night(begun: datetime, day: int, has_failed: bool) -> Iterator[str]:
    run = f"{begun:%Y%m%d}-tap-shop"
    count = 30 if has_failed else 40 if day == THIN else 100 + day % 3
    for page in range(20):
        tags = {"endpoint": "orders", "http_status_code": 200}
        timer = {"cls_type": "metric", "type": "timer", "metric": "http_request_duration", "tags": tags}
        yield _line(run, page, begun + timedelta(seconds=page), "INFO", "tap-shop.metric", {**timer, "value": 0.2})
    if has_failed:
        error = {"cls_type": "log", "message": "orders: page 7 failed", "severity": "ERROR", "exception": FAILURE}
        yield _line(run, 20, begun + timedelta(seconds=21), "ERROR", "tap-shop", error)
        yield '{"schema": "1.0.0", "header": {"id":\n'
    yield _line(run, 21, begun + timedelta(seconds=22), "ERROR" if has_failed else "INFO", "tap-shop.run", {
        "cls_type": "run", "outcome": "failed" if has_failed else "succeeded", "duration": 22.0 + day % 2,
        "exit_code": int(has_failed), "command": "tap-shop", "records": count,
        "streams": [{"stream": "orders", "records": count, "bytes": 50 * count}],
    })  # fmt: skip


def _line(run: str, number: int, when: datetime, level: str, channel: str, payload: dict[str, Any]) -> str:
    header = {
        "id": f"{run}-{number}", "channel": channel, "timestamp": when.isoformat().replace("+00:00", "Z"),
        "level": level, "composition": False, "context": {"application": "tap-shop", "run_id": run},
    }  # fmt: skip
    return json.dumps({"schema": "1.0.0", "header": header, "payload": payload}) + "\n"
