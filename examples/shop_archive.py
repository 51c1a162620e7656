"""Sample data for the how-to pages: the events of a shop's sync, three weeks of nights up to now.

    python examples/shop_archive.py

writes ``archive/date=…/events.jsonl`` and ``history.jsonl`` into the current folder. One night is thin, and the last
run, ``night-21``, failed. The last file of the archive has one line that is not an event. Run it again to move the
nights up to now.
"""

import json
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

DAYS = 21
THIN = 10
"""The night that has 40 records, where others have about 100."""

BROKEN = '{"schema": "0.1.0", "header": {"id":'

FAILURE = {
    "type": "ConnectionError",
    "message": "HTTP 503 from https://shop.example/orders?page=7",
    "frames": [{"file": "tap_shop/client.py", "line": 41, "function": "get_page"}],
}


def main() -> str | None:
    """Write the archive, and return why not if the folder ``archive`` has other files."""
    archive = Path("archive")
    own = set(archive.glob("date=*/events.jsonl"))
    if own != {path for path in archive.rglob("*") if path.is_file()}:
        return "The folder archive has other files. Run this in an empty folder, with the path of this program."
    for path in own:
        path.unlink()
    write_archive(archive)
    lines = [line for path in sorted(archive.glob("date=*/*")) for line in path.read_text("utf-8").splitlines()]
    Path("history.jsonl").write_text("".join(f"{line}\n" for line in lines if line != BROKEN), encoding="utf-8")
    print(f"archive and history.jsonl have {DAYS} nights of tap-shop")
    return None


def write_archive(archive: Path) -> None:
    """Write a run each night up to two hours ago, of which the last one failed."""
    last = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    for day in range(DAYS):
        begun = last - timedelta(days=DAYS - 1 - day)
        path = archive / f"date={begun:%Y-%m-%d}" / "events.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(night(begun, day, day == DAYS - 1)), encoding="utf-8")


def night(begun: datetime, day: int, has_failed: bool) -> Iterator[str]:
    """Yield the lines of one run: a timer for each request, the error if it failed, and the report of the run."""
    run = f"night-{day + 1}"
    count = 30 if has_failed else 40 if day == THIN else 100 + day % 3
    for page in range(20):
        tags = {"endpoint": "orders", "http_status_code": 200}
        timer = {"cls_type": "metric", "type": "timer", "metric": "http_request_duration", "tags": tags}
        yield event(run, page, begun + timedelta(seconds=page), "INFO", "tap-shop.metric", {**timer, "value": 0.2})
    if has_failed:
        error = {"cls_type": "log", "message": "orders: page 7 failed", "severity": "ERROR", "exception": FAILURE}
        yield event(run, 20, begun + timedelta(seconds=21), "ERROR", "tap-shop", error)
        yield BROKEN + "\n"
    yield event(run, 21, begun + timedelta(seconds=22), "ERROR" if has_failed else "INFO", "tap-shop.run", {
        "cls_type": "run", "outcome": "failed" if has_failed else "succeeded", "duration": 22.0 + day % 2,
        "exit_code": int(has_failed), "command": "tap-shop", "records": count,
        "streams": [{"stream": "orders", "records": count, "bytes": 50 * count}],
    })  # fmt: skip


def event(run: str, number: int, when: datetime, level: str, channel: str, payload: dict[str, Any]) -> str:
    """Return the line of an event."""
    header = {
        "id": f"{when:%Y%m%d}-{run}-{number}", "channel": channel, "timestamp": when.isoformat().replace("+00:00", "Z"),
        "level": level, "composition": False, "context": {"application": "tap-shop", "run_id": run},
    }  # fmt: skip
    return json.dumps({"schema": "0.1.0", "header": header, "payload": payload}) + "\n"


if __name__ == "__main__":
    sys.exit(main())
