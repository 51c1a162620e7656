"""The report's page in headless Chromium: search, filters, links, and its looks on a phone."""

from collections.abc import Callable, Generator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

from handmade import DAY, NOW, failure, report, run

from balog.analytics.reporting import model as m
from balog.analytics.reporting.links import parse_link
from balog.analytics.reporting.page import make_page

pytestmark = pytest.mark.service

TAPS = {"tap_shop": ["orders", "products"], "tap_bank": ["accounts", "orders"], "tap_été": ["a&b=c d"]}
OUTCOMES = ("succeeded", "failed", "unknown")
RUNS = [(number, list(TAPS)[number % 3], OUTCOMES[number % 2 if number < 12 else 2]) for number in range(15)]

Open = Callable[..., Any]


def error_line(number: int, run_id: str) -> m.ErrorLine:
    return m.ErrorLine(
        at=NOW - timedelta(minutes=number), id=f"LG{number}", run_id=run_id, fingerprint=f"{number:016x}",
        level="ERROR", channel="tap_shop.log", application="tap_shop", message=f"row {number} was Refused", events=2,
    )  # fmt: skip


def made(**changes: Any) -> m.Report:
    """Return a report of 15 runs of three pipelines, 2 failures and 4 streams."""
    runs = [
        run(
            number, run_id=f"r{number}", applications=["balog", tap], outcome=outcome, started=NOW - number * DAY / 3,
            ended=NOW - number * DAY / 3 + timedelta(minutes=5), duration=10.0**(number % 5),
            streams=[m.RunStreamStats(stream=name, records=5, bytes=1) for name in TAPS[tap]],
            parts=[m.RunPart(application=tap, first=NOW, last=NOW + timedelta(minutes=5), events=3, errors=1)],
            lines=[error_line(number, f"r{number}")] if number < 2 else [],
            failures=[f"{number:016x}"] if number < 2 else [],
        )
        for number, tap, outcome in RUNS
    ]  # fmt: skip
    failures = [
        failure(number, message=f"row <n> was refused {number}", applications=[tap], runs=[f"r{number}"],
                days=[m.FailureDay(day=NOW - DAY, events=3)], all_days=1, lines=[error_line(number, f"r{number}")])
        for number, tap in enumerate(["tap_shop", "tap_bank"])
    ]  # fmt: skip
    nothing = dict.fromkeys(("timer", "seconds", "p50", "p95", "p95_now", "p95_before", "rate"))
    streams = [
        m.StreamSummary(
            stream=name, applications=[tap for tap in TAPS if name in TAPS[tap]], records=5, bytes=890, slower=False,
            runs=[m.StreamRun(run_id=f"r{number}", started=NOW, duration=2.0, outcome=outcome, records=5, bytes=1,
                              rate=2.5) for number, tap, outcome in RUNS if name in TAPS[tap]],
            all_runs=9, succeeded=NOW - timedelta(hours=2), age=7200.0, **nothing,
        )
        for name in ("orders", "products", "accounts", "a&b=c d")
    ]  # fmt: skip
    steps = [m.Throughput(at=NOW - timedelta(hours=n), events=6, errors=n % 3, records=5) for n in range(120, 0, -1)]
    values: dict[str, Any] = {
        "runs": runs, "failures": failures, "streams": streams, "throughput": steps,
        "totals": {"runs": 15, "failures": 2, "failed_runs": 6, "unknown_runs": 3},
    }  # fmt: skip
    return report(**(values | changes))


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Generator[Open, None, None]:
    """Opens the page of a report, at a hash; ``errors`` of the page are what it complained about."""
    contexts = []

    def open_page(one: m.Report, hash_: str = "", width: int = 1280, **options: Any) -> Any:
        links = [
            parse_link("logs=https://logs.example/{run_id}?from={since_ms}"),
            parse_link("http://x.example/{stream}"),
        ]
        (tmp_path / "page.html").write_text(make_page(one, links), "utf-8")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.errors = []
        page.on("console", lambda message: page.errors.append(message.text))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("request", lambda request: page.errors.extend([request.url] if "page.html" not in request.url else []))
        page.goto((tmp_path / "page.html").as_uri() + hash_)
        return page

    yield open_page
    for context in contexts:
        context.close()


def shown(page: Any, name: str) -> list[str]:
    """Return the first cells of the rows that are visible."""
    code = (
        "rows => rows.filter(row => row.getBoundingClientRect().height > 0).map(row => row.cells[0].innerText.trim())"
    )
    found: list[str] = page.eval_on_selector_all(f"#{name}-table tbody tr", code)
    return found


def run_ids(tap: str = "", outcome: str = "") -> list[str]:
    return [f"r{n}" for n, own, ended in RUNS if tap in ("", own) and outcome in ("", ended)]


def test_filters_show_the_runs_failures_and_streams_that_match_all_of_them(open_page: Open) -> None:
    """Pipeline, outcome and stream each leave what a list in Python leaves, and Clear shows all again."""
    page = open_page(made())
    page.select_option("[name=pipeline]", "tap_shop")
    assert shown(page, "runs") == run_ids("tap_shop")
    assert shown(page, "failures") == ["new RuntimeError row <n> was refused 0"]
    assert shown(page, "streams") == ["orders", "products"]
    page.select_option("[name=outcome]", "failed")
    assert shown(page, "runs") == run_ids("tap_shop", "failed")
    assert (
        page.inner_text("#filter output")
        == f"1 of 2 failures, {len(run_ids('tap_shop', 'failed'))} of 15 runs, 2 of 4 streams"
    )
    page.click("#filter button")
    assert shown(page, "runs") == run_ids()
    page.select_option("[name=stream]", "orders")
    assert shown(page, "runs") == [f"r{n}" for n, tap, _ in RUNS if "orders" in TAPS[tap]]
    assert page.errors == []


def test_search_finds_words_of_messages_runs_and_streams_in_any_case(open_page: Open) -> None:
    """All words must occur, in the row or in its details; other tables are searched as well."""
    page = open_page(made())
    page.fill("[type=search]", "REFUSED row")
    assert shown(page, "runs") == ["r0", "r1"]
    assert len(shown(page, "failures")) == 2
    assert shown(page, "channels") == []
    page.fill("[type=search]", "été")
    assert shown(page, "runs") == run_ids("tap_été")
    page.fill("[type=search]", "nothing like this")
    assert shown(page, "runs") == shown(page, "streams") == shown(page, "metrics") == []
    assert page.evaluate("document.querySelectorAll('.details').length") == 3
    assert page.eval_on_selector_all(".details", "all => all.every(one => !one.getBoundingClientRect().height)")


def test_the_hash_holds_the_search_and_opens_it_again(open_page: Open) -> None:
    """A link that one reader copies shows another reader the same rows; special characters are kept."""
    first = open_page(made())
    first.select_option("[name=stream]", "a&b=c d")
    first.fill("[type=search]", "tap_été r1")
    hash_ = first.evaluate("location.hash")
    second = open_page(made(), hash_)
    assert second.input_value("[type=search]") == "tap_été r1"
    assert second.input_value("[name=stream]") == "a&b=c d"
    assert shown(second, "runs") == shown(first, "runs") != []
    second.evaluate("location.hash = '#outcome=unknown&q='")
    second.keyboard.press("Tab")  # the event comes after this script
    assert shown(second, "runs") == run_ids(outcome="unknown")
    odd = open_page(made(), "#outcome=%E0%A4%A&pipeline=gone")
    assert shown(odd, "runs") == run_ids()
    assert first.errors == second.errors == odd.errors == []


@pytest.mark.parametrize("script", [True, False])
def test_a_link_to_a_run_opens_its_section(open_page: Open, script: bool) -> None:
    """From a failure to its run and on to a stream, with and without the script; every link leads somewhere."""
    page = open_page(made(), "#run-r1", java_script_enabled=script)
    body = page.locator('[id="run-r1"]')
    assert body.is_visible()
    assert "row 1 was Refused" in body.inner_text()
    body.get_by_role("link", name="orders").click()
    assert page.locator('[id="stream-orders"]').is_visible()
    assert "2 h 00 min ago" in page.locator('[id="stream-orders"]').inner_text()
    page.locator("#failures-table a").first.click()
    assert page.locator(f'[id="f-{0:016x}"]').is_visible()
    if script:
        there = "document.getElementById(decodeURIComponent(link.hash.slice(1)))"
        dead = f"all => all.filter(link => link.hash && !{there}).length"
        assert page.eval_on_selector_all("a[href^='#']", dead) == 0


def test_a_link_shows_a_run_that_the_filter_hid(open_page: Open) -> None:
    """Following a link has priority over the filter."""
    page = open_page(made(), "#outcome=unknown")
    assert not page.locator('[data-key="run-r0"]').first.is_visible()
    page.evaluate("location.hash = '#run-r0'")
    page.keyboard.press("Tab")
    assert page.locator('[id="run-r0"]').is_visible()


def test_without_the_script_everything_is_there_and_outcomes_can_be_chosen(open_page: Open) -> None:
    """No control that does nothing is shown."""
    page = open_page(made(), java_script_enabled=False)
    assert not page.locator("#filter").is_visible()
    assert page.locator("#runs-table tbody tr").count() == 15
    page.check("#only-unknown")
    assert [row.is_visible() for row in page.locator("#runs-table tbody tr").all()].count(True) == 3


def test_search_and_filters_are_used_by_keyboard_alone(open_page: Open) -> None:
    """Tab reaches the search, typing filters, arrows choose, and focus is visible."""
    page = open_page(made())
    page.focus("[type=search]")
    page.keyboard.type("tap_bank")
    assert shown(page, "runs") == run_ids("tap_bank")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "outcome"
    page.keyboard.press("ArrowDown")
    assert shown(page, "runs") == run_ids("tap_bank", page.input_value("[name=outcome]"))
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert shown(page, "runs") == run_ids()
    assert page.evaluate("document.activeElement.name") == "q"


OVERLAPS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const texts = [...svg.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()])
      .filter(([text, box]) => text && box.width);
    for (const [i, [a, one]] of texts.entries()) for (const [b, two] of texts.slice(i + 1)) {
      if (one.left < two.right && two.left < one.right && one.top < two.bottom - 1 && two.top < one.bottom - 1) {
        found.push([a, b]);
      }
    }
  }
  return found;
}"""
SPANS = {
    "minutes": timedelta(minutes=40),
    "hours": timedelta(hours=9),
    "days": 9 * DAY,
    "months": 300 * DAY,
    "years": 2000 * DAY,
}


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("width", [390, 1280])
def test_no_label_overlaps_and_nothing_is_wider_than_the_window(open_page: Open, width: int, span: str) -> None:
    """Charts of any span of time, with everything unfolded; the years are in the charts."""
    length = SPANS[span]
    runs = [
        run(n, run_id=f"run-{n}-" + "x" * 40, started=NOW - length * n / 40, duration=10.0 ** (n % 7))
        for n in range(41)
    ]
    steps = [
        m.Throughput(at=NOW - max(length, 5 * DAY) * n / 60, events=60, errors=n, records=5) for n in range(60, -1, -1)
    ]
    one = made(runs=runs, throughput=steps, step=3600.0)
    page = open_page(one, width=width)
    assert page.evaluate(OVERLAPS) == []
    texts = page.eval_on_selector_all(
        "figure svg text", "all => all.filter(one => one.getBoundingClientRect().width).map(one => one.textContent)"
    )
    assert sum("2026" in text for text in texts) >= 2
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_tables_of_runs_failures_and_streams_fit_a_phone(open_page: Open) -> None:
    """The three tables need no scrolling sideways; what they leave out is in the details."""
    for width in (390, 1280):
        page = open_page(made(), width=width)
        for name in ("runs", "failures", "streams"):
            fits = "one => one.scrollWidth <= one.clientWidth"
            assert page.eval_on_selector(f"#{name} .scroll", fits), (name, width)


def test_links_to_logs_name_the_run_and_its_time(open_page: Open) -> None:
    """The section of a run has the link of runs, that of a stream the link of streams, encoded."""
    page = open_page(made(), "#run-r0")
    link = page.locator('[id="run-r0"] .links a')
    assert link.get_attribute("href") == f"https://logs.example/r0?from={int(NOW.timestamp() * 1000)}"
    assert link.inner_text() == "logs ↗"
    urls = page.eval_on_selector_all("#streams .links a", "all => all.map(link => link.getAttribute('href'))")
    assert "http://x.example/a%26b%3Dc%20d" in urls
