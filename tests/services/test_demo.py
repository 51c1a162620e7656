"""The whole main job, as `make demo` runs it, in a copy of the checkout: real taps, a real target, Spark."""

import csv
import gzip
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.programs import run_program

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
PARTS = ["tap-jsonl", "tap-weather", "target-csv", "vega-datasets"]


@pytest.fixture(scope="module")
def demo(checkout: Path) -> tuple[str, Path]:
    """What the demo printed, and the folder with what it made."""
    (checkout / ".demo").mkdir(exist_ok=True)
    for part in PARTS:
        if not (ROOT / ".demo" / part / "installed").exists():
            pytest.skip(f".demo/{part} is not installed: run make demo-parts")
        (checkout / ".demo" / part).symlink_to(ROOT / ".demo" / part)
    done = run_program(sys.executable, "-m", "demo", cwd=checkout, code=None)
    logs = [path.read_text() for path in sorted((checkout / ".demo/out/logs").glob("*.log"))]
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *logs[-1:]])
    assert done.stderr == ""
    return done.stdout, checkout / ".demo" / "out"


def log(demo: tuple[str, Path], name: str) -> str:
    """Return the output of a step."""
    (path,) = demo[1].glob(f"logs/??-{name}.log")
    return path.read_text()


def test_each_step_is_one_line_and_the_rest_is_in_files(demo: tuple[str, Path]) -> None:
    """Step and seconds; then the table of what there is to see, with links to both pages."""
    lines, _, closing = demo[0].partition("\n\nWhat you saw\n")
    for number, line in enumerate(lines.splitlines(), 1):
        assert re.fullmatch(rf" ?{number}  \S.{{1,90}}\S +\d+\.\d s", line)
    assert len(list(demo[1].glob("logs/*.log"))) == len(lines.splitlines())
    links = re.findall(r"file://(\S+)", closing)
    assert [Path(link).name for link in links] == ["report.html", "watch.html"]
    assert all(Path(link).exists() for link in links)
    assert re.search(r"\nDone in \d+ s\.\n$", closing)


def test_a_monitor_fires_when_the_sync_fails_and_resolves_when_it_is_mended(demo: tuple[str, Path]) -> None:
    printed, out = demo
    alerts = [json.loads(line)["payload"] for name in ("fired", "resolved") for line in
              (out / f"alert-{name}.jsonl").read_text().splitlines()]  # fmt: skip
    assert [(one["monitor"], one["state"], one["labels"]["pipeline"]) for one in alerts] == [
        ("syncs-succeed", "firing", "tap-weather"),
        ("syncs-succeed", "resolved", "tap-weather"),
    ]
    assert "Watcher: syncs-succeed fires: 1 of 2 runs failed within 1 d, more than 40%." in printed
    assert re.search(r"A backtest over \d+ events in the tables: the same alert, for [\d.]+ s, and no other", printed)
    page = (out / "watch.html").read_text(encoding="utf-8")
    assert alerts[0]["since"].replace("Z", "+00:00") in page


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
    said = log(demo, "consume") + log(demo, "consume-mended")
    runs = re.findall(
        r"balog consume: (\d+) deliver(?:y|ies): (\d+) succeeded, 0 duplicates, 0 unwanted, 0 failed attempts", said
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
    said, out = log(demo, "report"), demo[1]
    page = (out / "report.html").read_text(encoding="utf-8")
    for number in ("3,376", "1,461", "365"):
        assert number in page
        assert number in said


def test_what_the_service_refused_is_mended_and_filtered_like_the_rest(demo: tuple[str, Path]) -> None:
    assert "3374 events accepted (airports 3374), 2 rejected" in log(demo, "service")
    assert "balog replay: 2 events were sent" in log(demo, "replay")
    assert "/hawaii got the 16 airports of HI, each signed" in demo[0]
