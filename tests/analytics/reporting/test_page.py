import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

from handmade import NOW, failure, report, run

from balog.analytics.reporting import model as m
from balog.analytics.reporting.page import MOST_FAILURES, MOST_RUNS, make_page
from balog.ui.formats import amount, length, seconds, size, span, when

EVIL = "</script><img src=x onerror=alert(1)>\"'&\x1b[31m\x00"
LISTS = ("health", "findings", "failures", "runs", "throughput", "streams", "requests", "metrics", "waiting",
         "channels", "quarantine")  # fmt: skip


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))

    def of(self, name: str) -> list[str | None]:
        return [attrs[name] for _, attrs in self.seen if name in attrs]


def test_the_page_asks_for_nothing_and_holds_one_script_that_its_policy_names() -> None:
    page = make_page(report())
    tags = Tags(page)
    assert not [tag for tag, _ in tags.seen if tag in ("img", "link", "iframe", "object", "form")]
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; " in page
    assert not re.search(r"innerHTML|eval|fetch\(|Function\(", script)
    assert not [*tags.of("src"), *tags.of("action")]
    assert all(link is not None and link.startswith("#") for link in tags.of("href"))
    assert not re.search(r"url\(|@import", page)
    assert "default-src 'none'" in page


def test_links_lead_to_places_that_are_there_once() -> None:
    tags = Tags(make_page(report()))
    ids = tags.of("id")
    assert len(ids) == len(set(ids))
    assert {f"#{name}" for name in ids} >= set(tags.of("href"))
    assert {f"#f-{0:016x}", "#run-r1", "#stream-users"} <= set(tags.of("href"))


def test_a_run_that_is_not_listed_is_no_link() -> None:
    page = make_page(report(failures=[failure(runs=["r0", "long gone"])]))
    assert "<code>long gone</code>" in page
    assert '<a href="#run-r0"><code>r0</code></a>' in page


def test_what_an_event_says_is_shown_and_never_obeyed() -> None:
    shares = dict.fromkeys(("p50", "p95", "p99", "p95_now", "p95_before"), 1.0)
    some = dict.fromkeys(("p50", "p95", "p95_now", "p95_before"), 1.0)
    example = m.FailureExample(id=EVIL, timestamp=NOW, run_id=EVIL, message=EVIL)
    made = report(
        sources=[EVIL],
        conditions=[EVIL],
        findings=[m.HealthFinding(kind="new_failure", words=EVIL, since=NOW, link=EVIL)],
        failures=[failure(fingerprint=EVIL, error_type=EVIL, message=EVIL, channels=[EVIL], runs=[EVIL],
                          example=example)],
        runs=[run(run_id=EVIL, applications=[EVIL], outcome=EVIL, problem=EVIL, failures=[EVIL],
                  streams=[m.RunStreamStats(stream=EVIL, records=1, bytes=1)])],
        streams=[m.StreamSummary(stream=EVIL, applications=[EVIL], records=5, bytes=890, timer=EVIL, seconds=1.5,
                               slower=False, rate=3.3, **some)],
        requests=[m.RequestStats(endpoint=EVIL, status=EVIL, requests=1, seconds=1.0, slower=False, **shares)],
        metrics=[m.MetricStats(metric=EVIL, type=type_, count=1, sum=1.0, low=1.0, high=1.0, **shares)
                 for type_ in ("timer", EVIL)],
        waiting=[m.StageWaits(stage=EVIL, read=1.0, write=1.0, slow="neither")],
        channels=[m.ChannelStats(channel=EVIL, level=level, events=12, errors=12, first=NOW, last=NOW)
                  for level in ("ERROR", EVIL)],
        quarantine=[m.BadLines(reason=EVIL, lines=3, file=EVIL, offset=1)],
    )  # fmt: skip
    page = make_page(made)
    tags = Tags(page)
    assert not [tag for tag, _ in tags.seen if tag == "img"]
    assert [tag for tag, _ in tags.seen].count("script") == 1
    assert not [name for _, attrs in tags.seen for name in attrs if name.startswith("on")]
    assert "\x1b" not in page
    assert "\x00" not in page
    assert page.count("&lt;/script&gt;&lt;img") >= 20


def test_every_number_stands_in_the_page_exactly() -> None:
    numbers = re.findall(r'<data value="([^"]+)">', make_page(report()))
    for number in ("40", "6", "4", "1.5", "0.1", "0.5", "2.0", "3.5", "5", "7", "17", "61.0", "900", "19", "3.3"):
        assert number in numbers


def test_an_archive_without_events_says_so_in_place_of_tables() -> None:
    nothing: dict[str, Any] = {**{name: [] for name in LISTS}, **dict.fromkeys(("events", "errors", "quarantined"), 0)}
    page = make_page(report(**nothing, period=None, compared=None))
    assert "There is no event." in page
    assert "<table" not in page


def test_bad_lines_alone_are_told() -> None:
    lists = {name: [] for name in LISTS if name != "quarantine"}
    page = make_page(report(**lists, events=0, errors=0, period=None, compared=None))
    assert "$: not JSON" in page


def test_what_is_more_than_a_page_holds_is_counted() -> None:
    many = report(
        runs=[run(n, run_id=f"run{n}") for n in range(MOST_RUNS + 50)],
        failures=[failure(n, message=f"broke {n:04d}") for n in range(MOST_FAILURES + 9)],
        totals={"runs": 1250, "failures": 109, "failed_runs": 0, "unknown_runs": 0},
    )
    page = make_page(many)
    assert page.count("<code>run") == 2 * MOST_RUNS  # in the table and in detail
    assert f"{MOST_RUNS} of 1,250 runs are shown" in page
    assert page.count("broke ") == 2 * MOST_FAILURES
    assert f"{MOST_FAILURES} of 109 failures are shown" in page


def test_streams_without_timers_still_make_a_page() -> None:
    nothing = dict.fromkeys(("timer", "seconds", "p50", "p95", "p95_now", "p95_before", "rate"))
    stream = m.StreamSummary(stream="users", applications=["tap"], records=5, bytes=890, slower=False, **nothing)
    page = make_page(report(streams=[stream]))
    assert '<a href="#stream-users">users</a>' in page
    assert "Records come from the counters record_count, or from the reports of runs" in page
    assert "No run's report names this stream" in page.replace("&#39;", "'")


def test_quiet_times_say_so() -> None:
    assert "Nothing new, nothing slower, nothing silent." in make_page(report(findings=[]))


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-9, 1e9])
def test_odd_times_still_make_a_page(value: float) -> None:
    shares = dict.fromkeys(("p50", "p95", "p99", "p95_now", "p95_before"), value)
    metric = m.MetricStats(metric="m", type="timer", count=1, sum=value, low=value, high=value, **shares)
    assert "<table" in make_page(report(metrics=[metric], runs=[run(duration=value)]))


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
        (size(512), "512 B"),
        (size(1_204_000), "1.204 MB"),
        (size(None), "–"),
        (length(1), "1 hour"),
        (length(24), "24 hours"),
        (length(51), "2 days 3 hours"),
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
