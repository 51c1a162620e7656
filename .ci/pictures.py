"""Make the pictures of the documentation: a report of ten days of two taps, in headless Chromium.

Run by ``make pictures``::

    python .ci/pictures.py                  # into docs/pictures
    python .ci/pictures.py FOLDER

The events are the same each time. On the last day, one tap's requests become slow, and the other's runs fail.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"

START = datetime(2026, 11, 10, tzinfo=timezone.utc)
DAYS = 10
STREAMS = {"tap-orders": ("orders", "customers"), "tap-stripe": ("charges", "refunds", "invoices")}
SIZE = {"width": 1100, "height": 900}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    with tempfile.TemporaryDirectory() as scratch:
        archive, page = Path(scratch, "archive.jsonl"), Path(scratch, "report.html")
        archive.write_text("".join(json.dumps(event) + "\n" for event in events()), encoding="utf-8")
        command = [sys.executable, "-m", "balog", "report", archive.name, "--engine", "duckdb", "--html", page.name]
        subprocess.run(command, check=True, cwd=scratch, stdout=subprocess.DEVNULL)
        text = page.read_text(encoding="utf-8").replace(str(archive), "/srv/archive")  # not a folder of this machine
        page.write_text(text, encoding="utf-8")
        take(page, folder / "report.png")


def take(page: Path, picture: Path) -> None:
    """Write what a browser shows first of a page."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport=SIZE, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=picture)
        browser.close()


def events() -> Iterator[dict[str, Any]]:
    """Yield the events of a run of each tap every six hours."""
    draw = random.Random(1)
    for number in range(DAYS * 4):
        for tap in STREAMS:
            yield from run(draw, tap, START + timedelta(hours=6 * number), is_last_day=number >= (DAYS - 1) * 4)


def run(draw: random.Random, tap: str, at: datetime, is_last_day: bool) -> Iterator[dict[str, Any]]:
    run_id = f"{draw.getrandbits(64):016x}"
    slow = 2.5 if is_last_day and tap == "tap-stripe" else 1.0
    is_broken = is_last_day and tap == "tap-orders" and at.hour >= 12
    fails = is_broken or draw.random() < 0.08
    clock = at

    def event(level: str, channel: str, payload: dict[str, Any]) -> dict[str, Any]:
        header = {
            "id": f"{tap}-{draw.getrandbits(64):016x}",
            "channel": f"{tap}.{channel}",
            "timestamp": clock.isoformat().replace("+00:00", "Z"),
            "level": level,
            "composition": False,
            "context": {"application": tap, "run_id": run_id, "fqdn": "worker-1.example.com", "process": 4711},
        }
        return {"schema": "0.1.0", "header": header, "payload": payload}

    written = []
    for stream in STREAMS[tap]:
        yield event("INFO", "sync", {"cls_type": "log", "message": f"Syncing {stream}"})
        for _ in range(8):
            seconds = round(draw.lognormvariate(-1.2, 0.4) * slow, 3)
            clock += timedelta(seconds=seconds + 1)
            yield event("INFO", "sync", timer("http_request_duration", seconds, endpoint=stream, status="200"))
        records = draw.randrange(1500, 3500)
        written.append({"stream": stream, "records": records, "bytes": records * 310})
        yield event("INFO", "sync", timer("sync_duration", (clock - at).total_seconds(), stream=stream))
    if fails:
        message = "Column amount is missing in the answer" if is_broken else "The connection was reset"
        yield event("ERROR", "sync", {"cls_type": "log", "message": message})
    ended = {
        "cls_type": "run",
        "outcome": "failed" if fails else "succeeded",
        "duration": (clock - at).total_seconds(),
        "exit_code": int(fails),
        "command": tap,
        "records": sum(each["records"] for each in written),
        "streams": written,
    }
    yield event("ERROR" if fails else "INFO", "run", ended)


def timer(metric: str, seconds: float, **tags: str) -> dict[str, Any]:
    return {"cls_type": "metric", "type": "timer", "metric": metric, "value": seconds, "tags": tags}


if __name__ == "__main__":
    main()
