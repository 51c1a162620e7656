"""The whole main job, as `make demo` runs it, in a copy of the checkout: real taps, a real target, Spark."""

import csv
import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
PARTS = ["tap-jsonl", "tap-weather", "target-csv", "vega-datasets"]


@pytest.fixture(scope="module")
def demo(checkout: Path) -> tuple[str, Path]:
    """What the demo said on both outputs, and the folder with what it made."""
    (checkout / ".demo").mkdir(exist_ok=True)
    for part in PARTS:
        if not (ROOT / ".demo" / part / "installed").exists():
            pytest.skip(f".demo/{part} is not installed: run make demo-parts")
        (checkout / ".demo" / part).symlink_to(ROOT / ".demo" / part)
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        cwd=checkout,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr, checkout / ".demo" / "out"


@pytest.fixture(scope="module")
def events(demo: tuple[str, Path]) -> list[dict[str, Any]]:
    lines: list[str] = []
    for path in demo[1].glob("archive/singer-events/date=*/*.jsonl.gz"):
        lines.extend(gzip.decompress(path.read_bytes()).decode().splitlines())
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("name", "records"), [("airports", 3376), ("weather", 1461)])
def test_the_target_loads_every_record(demo: tuple[str, Path], name: str, records: int) -> None:
    with (demo[1] / "csv" / f"{name}.csv").open(newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == records


def test_each_sync_leaves_one_report_of_its_run(events: list[dict[str, Any]]) -> None:
    runs = [event["payload"] for event in events if event["payload"]["cls_type"] == "run"]
    assert sorted((run["outcome"], run["records"], run["exit_code"]) for run in runs) == [
        ("failed", 365, 1),
        ("succeeded", 365, 0),
        ("succeeded", 1461, 0),
        ("succeeded", 3376, 0),
    ]


def test_each_event_is_handled_once_and_archived_once(demo: tuple[str, Path], events: list[dict[str, Any]]) -> None:
    runs = re.findall(
        r"balog consume: (\d+) received, (\d+) succeeded, 0 duplicates, 0 unwanted, 0 failed attempts", demo[0]
    )
    assert len(runs) == 2
    assert sum(int(received) for received, _ in runs) == sum(int(succeeded) for _, succeeded in runs) == len(events)
    assert len({event["header"]["id"] for event in events}) == len(events)


def test_errors_are_forwarded_into_files_of_their_own(demo: tuple[str, Path], events: list[dict[str, Any]]) -> None:
    lines: list[str] = []
    for path in demo[1].glob("errors/singer-events/date=*/*.jsonl.gz"):
        lines.extend(gzip.decompress(path.read_bytes()).decode().splitlines())
    errors = [event["header"]["id"] for event in events if event["header"]["level"] in ("ERROR", "CRITICAL")]
    assert sorted(json.loads(line)["header"]["id"] for line in lines) == sorted(errors)
    assert errors


def test_the_record_counters_of_both_taps_become_metrics(events: list[dict[str, Any]]) -> None:
    counts: Counter[str] = Counter()
    for event in events:
        payload = event["payload"]
        if payload["cls_type"] == "metric" and payload["metric"] == "record_count":
            counts[payload["tags"].get("stream") or payload["tags"]["endpoint"]] += payload["value"]
    assert counts == {"airports": 3376, "weather": 1461 + 365 + 365}


def test_a_failing_tap_leaves_its_whole_traceback_in_one_event(events: list[dict[str, Any]]) -> None:
    failures = [event["payload"] for event in events if event["header"].get("level") == "ERROR"]
    tracebacks = [str(payload) for payload in failures if payload["cls_type"] == "log"]
    assert any("Traceback" in text and "SourceError" in text for text in tracebacks), failures


def test_the_report_shows_the_records_of_the_runs(demo: tuple[str, Path]) -> None:
    said, out = demo
    page = (out / "report.html").read_text(encoding="utf-8")
    for number in ("3,376", "1,461", "365"):
        assert number in page
        assert number in said


def test_what_the_service_refused_is_mended_and_filtered_like_the_rest(demo: tuple[str, Path]) -> None:
    assert "3374 events accepted (airports 3374), 2 rejected" in demo[0]
    assert "balog replay: 2 events were sent" in demo[0]
    assert "/hawaii got the 16 airports of HI, each signed" in demo[0]
