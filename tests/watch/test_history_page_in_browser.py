"""The page of a backtest in headless Chromium: light, dark, on a phone, by keyboard, and without the net."""

import os
import random
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

from balog.watch.history.backtest import run_backtest
from balog.watch.history.history_page import make_page
from balog.watch.history.tracks import Tracks
from tests.watch.events import START, monitor, run, seconds
from tests.watch.history_events import lines, monitors
from tests.watch.history_pages import made_page

pytestmark = pytest.mark.service

OVERLAPS = """() => [...document.querySelectorAll("figure svg")].flatMap(svg => {
  const boxes = [...svg.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()])
    .filter(([text, box]) => text && box.width);
  return boxes.flatMap(([a, one], i) => boxes.slice(i + 1).filter(([b, two]) =>
    one.left < two.right && two.left < one.right && one.top < two.bottom - 1 && two.top < one.bottom - 1
  ).map(([b]) => [a, b]));
})"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hostile = monitor(name="<script>alert(1)</script>" + "x" * 90, freshness={"every": "8h"})
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(made_page(lines(3, every=6, days=20), [*monitors(), hostile], 20)[0], "utf-8")
    return path


@pytest.fixture(params=[(1280, "dark"), (390, "light")], ids=str)
def page(browser: Any, path: Path, request: pytest.FixtureRequest) -> Generator[Any, None, None]:
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.errors = []
    page.on("console", lambda message: page.errors.append(message.text))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("request", lambda one: page.errors.extend([one.url] if "page.html" not in one.url else []))
    page.goto(path.as_uri())
    yield page
    context.close()


def test_it_opens_without_a_request_or_a_complaint_and_fits_the_window(page: Any) -> None:
    """Charts are drawn, no label covers another, the text is readable on its ground, and nothing is too wide."""
    assert page.errors == []
    assert page.evaluate("document.scripts.length") == 0
    drawn = page.locator("article figure:visible").count()
    assert drawn == page.locator("article").count() > 10
    assert page.evaluate(OVERLAPS) == []
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    colours = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    bright = [sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) for colour in colours]
    assert abs(bright[0] - bright[1]) > 450


def test_a_link_of_an_alert_leads_to_its_series_and_the_table_opens_by_keyboard(page: Any) -> None:
    link = page.locator("#alerts-table a").first
    name = link.inner_text()
    link.focus()
    page.keyboard.press("Enter")
    article = page.locator("article:target")
    assert article.locator("h3").inner_text() == name
    assert article.locator("table").is_visible() is False
    article.locator("summary").focus()
    page.keyboard.press("Enter")
    assert article.locator("table").is_visible()
    assert page.errors == []


def test_the_picture_in_the_docs_can_be_made_again(browser: Any, tmp_path: Path) -> None:
    """Ten days of hourly runs: one writes nothing, one doubles, and some do not come.

    ``BALOG_PICTURES=docs/pictures`` names where the picture goes.
    """
    chance = random.Random(4)
    faults = {113: 0.0, 161: 2.0}
    events = [
        run(hour, streams={"orders": round(faults.get(hour, 1) * (900 + 500 * (hour % 24 < 12) + chance.gauss(0, 25)))})
        for hour in range(240)
        if hour not in (200, 201, 202, 203)
    ]
    watched = [
        monitor(name="rows-look-normal", volume={"seasonality": "hour_of_day"}),
        monitor(name="orders-arrive", pipeline="tap-shop", freshness={"every": "1h", "grace": "15m"}),
    ]
    tracks = Tracks(seconds(48))
    result = run_backtest(watched, events, seconds(48), seconds(240), tracks.add)
    assert [(one.monitor, (one.started - START).total_seconds() / 3600) for one in result.firings] == [
        ("rows-look-normal", 113),
        ("rows-look-normal", 161),
        ("orders-arrive", 200.25),
    ]
    (tmp_path / "page.html").write_text(make_page(result, tracks, "tables"), "utf-8")
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    page.goto((tmp_path / "page.html").as_uri())
    page.screenshot(path=Path(os.environ.get("BALOG_PICTURES", tmp_path)) / "backtest.png", full_page=True)
    page.close()
