import re
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

from balog.analytics.reporting.figures import amount, seconds, span, when
from balog.analytics.reporting.page import MOST_RUNS, make_page
from balog.analytics.reporting.report import BadLines, Channel, Metric, Report, Run

NOW = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
EVIL = "</script><img src=x onerror=alert(1)>\"'&\x1b[31m\x00"


def report(**changes: Any) -> Report:
    run = {"applications": ["tap"], "duration": 3.5, "outcome": "succeeded", "records": 5, "events": 7, "errors": 0}
    values: dict[str, Any] = {
        "made": NOW,
        "paths": ["/data"],
        "files": 2,
        "events": 12,
        "errors": 2,
        "quarantined": 3,
        "channels": [Channel(channel="a.b", level=level, events=6, errors=0) for level in ("INFO", None)],
        "metrics": [Metric(metric="wait", type="timer", count=4, sum=1.5, p50=0.1, p95=0.5, p99=2.0)],
        "runs": [Run(run_id=f"r{n}", started=NOW - timedelta(minutes=n), **run) for n in range(3)],
        "quarantine": [BadLines(reason="$: not JSON", lines=3, file="/data/a.jsonl", offset=17)],
    }
    return Report(**(values | changes))


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_page_asks_for_nothing_and_holds_no_script() -> None:
    page = make_page(report())
    tags = Tags(page).seen
    assert not [tag for tag, _ in tags if tag in ("script", "img", "link", "iframe", "object")]
    assert not [value for _, attrs in tags for name, value in attrs.items() if name in ("src", "href", "action")]
    assert not re.search(r"url\(|@import", page)
    assert "default-src 'none'" in page


def test_what_an_event_says_is_shown_and_never_obeyed() -> None:
    made = report(
        paths=[EVIL],
        channels=[Channel(channel=EVIL, level="ERROR", events=12, errors=12)],
        metrics=[
            Metric(metric=EVIL, type=type_, count=1, sum=1.0, p50=1.0, p95=1.0, p99=1.0) for type_ in ("timer", EVIL)
        ],
        runs=[
            Run(
                run_id=EVIL,
                applications=[EVIL],
                started=NOW,
                duration=1.0,
                outcome=EVIL,
                records=None,
                events=1,
                errors=1,
            ),
        ],
        quarantine=[BadLines(reason=EVIL, lines=3, file=EVIL, offset=1)],
    )
    page = make_page(made)
    tags = Tags(page).seen
    assert not [tag for tag, _ in tags if tag in ("script", "img")]
    assert not [name for _, attrs in tags for name in attrs if name.startswith("on")]
    assert "\x1b" not in page
    assert "\x00" not in page
    assert page.count("&lt;/script&gt;&lt;img") >= 8


def test_every_number_stands_in_the_page_exactly() -> None:
    numbers = re.findall(r'<data value="([^"]+)">', make_page(report()))
    for number in ("12", "2", "3", "6", "4", "1.5", "0.1", "0.5", "2.0", "3.5", "5", "7", "17"):
        assert number in numbers


def test_an_archive_without_events_says_so_in_place_of_tables() -> None:
    nothing = dict.fromkeys(("events", "errors", "quarantined"), 0)
    lists: dict[str, Any] = {name: [] for name in ("channels", "metrics", "runs", "quarantine")}
    page = make_page(report(**nothing, **lists))
    assert "There is no event." in page
    assert "<table" not in page


def test_of_very_many_runs_the_latest_are_listed_and_the_rest_counted() -> None:
    run = {
        "applications": ["t"],
        "started": NOW,
        "duration": 0.0,
        "outcome": "unknown",
        "records": None,
        "events": 1,
        "errors": 0,
    }
    page = make_page(report(runs=[Run(run_id=f"run{n}", **run) for n in range(MOST_RUNS + 50)]))
    assert page.count("<code>run") == MOST_RUNS
    assert f"The latest {MOST_RUNS} of {MOST_RUNS + 50} runs" in page


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-9, 1e9])
def test_odd_times_still_make_a_page(value: float) -> None:
    metric = Metric(metric="m", type="timer", count=1, sum=value, p50=value, p95=value, p99=value)
    run = Run(run_id="r", applications=[], started=NOW, duration=value, outcome="failed", records=0, events=1, errors=0)
    assert "<table" in make_page(report(metrics=[metric], runs=[run]))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (amount(34099843.0), "34,099,843"),
        (amount(0.049755), "0.04976"),
        (amount(1234.56), "1,235"),
        (amount(float("inf")), "inf"),
        (amount(1e-7), "1e-07"),
        (amount(None), "–"),
        (seconds(0.0000125), "12.50 µs"),
        (seconds(0.25703), "257.0 ms"),
        (seconds(1937.46), "1,937 s"),
        (seconds(0.0), "0 s"),
        (span(3.24), "3.2 s"),
        (span(0.02), "20 ms"),
        (span(59.96), "60.0 s"),
        (span(625.01), "10 min 25 s"),
        (span(7500.0), "2 h 05 min"),
        (span(300_000.0), "3 d 11 h"),
        (when(NOW), "2026-11-20 12:00:00"),
    ],
)
def test_numbers_are_written_as_people_read_them(shown: str, expected: str) -> None:
    assert shown == expected
