"""The page of a backtest has the points, the bands and the alerts of the history, and nothing that a text could do."""

import json
import re
from collections import Counter, defaultdict
from datetime import datetime, timezone
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

from balog.event import decode
from balog.watch.evaluation import Evaluation
from balog.watch.history import history_page
from tests.watch.events import START, monitor, run, seconds
from tests.watch.history_events import lines, monitors
from tests.watch.history_pages import PageTables, made_page

DAYS = 20


@pytest.fixture(scope="module")
def history() -> list[str]:
    return lines(3, every=6, days=DAYS)


@pytest.fixture(scope="module")
def page(history: list[str]) -> str:
    return made_page(history, monitors(), DAYS)[0]


def test_the_points_of_a_series_are_the_counts_of_its_runs(history: list[str], page: str) -> None:
    """A plain recount of the lines: one point for each run that succeeded."""
    expected: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for line in history:
        event = json.loads(line)
        payload, pipeline = event["payload"], event["header"]["context"]["application"]
        if payload["cls_type"] == "run" and payload["outcome"] == "succeeded":
            when = event["header"]["timestamp"].replace("Z", "+00:00")
            for stream in payload["streams"]:
                key = f'thin{{pipeline="{pipeline}",stream="{stream["stream"]}"}}'
                expected[key].append((datetime.fromisoformat(when), float(stream["records"])))
    tables = PageTables(page).tables
    found = {
        label.removeprefix("Values of "): [(_time(row[0]), row[1]) for row in rows[1:]]
        for label, rows in tables.items()
        if label.startswith("Values of thin")
    }  # fmt: skip
    assert found == expected
    assert len(found) == 3


def test_bands_and_alerts_are_those_of_the_stream(history: list[str], page: str) -> None:
    """The events go through an evaluation one by one; its verdicts and changes of states are listed."""
    evaluation, verdicts, firings = Evaluation(monitors()), defaultdict(list), []
    began: dict[str, str] = {}
    evaluation.on_verdict = lambda series, verdict, when: verdicts[series.key].append((verdict, when))
    alerts = [alert for line in history for alert in evaluation.take(decode(line))]
    alerts += evaluation.advance(datetime(2026, 8, 1 + DAYS, tzinfo=timezone.utc).timestamp(), with_end=False)
    for alert, _ in alerts:
        if alert.state in ("firing", "silenced"):
            began.setdefault(alert.key, alert.since)
        elif alert.key in began:
            firings.append((alert.key, _time(began.pop(alert.key)), _time(alert.since), alert.state))
    firings += [(key, _time(since), "fires still", None) for key, since in began.items()]

    tables = PageTables(page).tables
    rows = tables["Alerts"][1:]
    shown = [(row[5], _time(row[0]), row[1] if row[1] == "fires still" else _time(row[1])) for row in rows]
    assert sorted(shown, key=str) == sorted((one[:3] for one in firings), key=str)
    assert {row[3] for row in rows if row[1] != "fires still"} == {one[3] for one in firings if one[3]} == {"resolved"}
    counts = Counter(key.partition("{")[0] for key, *_ in firings)
    by_monitor = {row[0]: (row[3], row[5]) for row in tables["Monitors"][1:]}
    assert {name: count for name, (count, _) in by_monitor.items() if count} == counts
    firsts = {(alert.key, alert.started) for alert, _ in alerts if alert.state == "firing"}
    sent = Counter(key.partition("{")[0] for key, _ in firsts)
    assert {row[0]: row[4] for row in tables["Monitors"][1:]} == {
        name: counts[name] - sent[name] for name in by_monitor
    }
    assert Counter(row[4] == "silenced" for row in rows) == {False: sent.total(), True: len(firings) - sent.total()}
    assert {row[4] for row in rows} > {"at once", "silenced"}  # and at the end of a silence
    first, last = (decode(line).header.timestamp for line in (history[0], history[-1]))
    days = (last - first).total_seconds() / 86400
    assert {name: per_week for name, (_, per_week) in by_monitor.items()} == {
        name: pytest.approx(sent[name] * 7 / days) for name in by_monitor
    }
    assert [row[3] for row in tables["Monitors"][1:]] == sorted(counts[one.name] for one in monitors())[::-1]

    checked = 0
    for label, rows in tables.items():
        if label.startswith("Values of "):
            for (verdict, when), row in zip(verdicts[label.removeprefix("Values of ")], rows[1:], strict=True):
                band = verdict.expected
                limits = [None if one is None else float(one) for one in (band and band.low, band and band.high)]
                assert [_time(row[0]).timestamp(), *row[2:4]] == [
                    when,
                    *("–" if one is None else one for one in limits),
                ]
                checked += band is not None
    assert checked > 500


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_the_marks_of_a_chart_are_where_its_values_are() -> None:
    """Each value has one mark. Its place is linear in its time and value, and its shape depends on the verdict."""
    values = [100, 102, 98, 101, 99, 103, 0, 100, 97, 260, 101, 100]
    events = [run(hour, streams={"orders": value}) for hour, value in enumerate(values)]
    thin = monitor(name="thin", volume={})
    page, result = _page_of([thin], events, 0, 12)
    drawing = re.search(r'<div class="wide">(.*?)</svg>', page, re.DOTALL)
    assert drawing
    groups = re.findall(r'<g class="mark-symbol role-mark[^>]*>(.*?)</g>', drawing[1], re.DOTALL)
    marks = re.findall(r'<path transform="translate\(([-\d.]+),([-\d.]+)\)" d="([^"]+)"', groups[-1])
    assert len(marks) == len(values)
    places = [(float(x), float(y)) for x, y, _ in marks]
    assert [x for x, _ in places] == pytest.approx([960 * hour / 12 for hour in range(12)], abs=0.6)
    slope = (places[9][1] - places[6][1]) / 260
    assert [y for _, y in places] == pytest.approx([places[6][1] + slope * value for value in values], abs=0.01)
    shapes = [shape for *_, shape in marks]
    firing = [START.timestamp() + 3600 * hour for hour in (6, 9)]
    assert [one.started.timestamp() for one in result.firings] == firing
    assert len({shapes[6], shapes[9]}) == 1  # not normal
    assert len({shapes[6], shapes[0], shapes[7]}) == 3  # not normal, learning, within limits
    spans = re.search(r'<g class="mark-rect role-mark[^>]*>(.*?)</g>', drawing[1], re.DOTALL)
    assert spans
    edges = re.findall(r'd="M([\d.]+),[\d.]+h([\d.]+)', spans[1])
    assert [(float(x), float(width)) for x, width in edges] == [
        (pytest.approx(960 * hour / 12, abs=0.6), pytest.approx(80, abs=0.6)) for hour in (6, 9)
    ]


def _page_of(monitors_: list[Any], events: list[Any], first: float, last: float) -> tuple[str, Any]:
    from balog.watch.history.backtest import run_backtest
    from balog.watch.history.tracks import Tracks

    tracks = Tracks(seconds(first))
    result = run_backtest(monitors_, events, seconds(first), seconds(last), tracks.add)
    return history_page.make_page(result, tracks, "events.jsonl"), result


def test_names_of_pipelines_are_text_and_the_page_asks_nobody() -> None:
    hostile = "<img src=x onerror=alert(1)>\"'</script></style></svg>&{{7*7}}\x1b[31m\u202e"
    late = monitor(name=f"late {hostile[:60]}", freshness={"every": "1h"})
    thin = monitor(name="thin", volume={})
    events = [run(hour, pipeline=hostile, streams={hostile: 100}) for hour in range(8)]
    page, _ = _page_of([late, thin], events, 0, 20)
    assert "<img" not in page
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert not re.search(r"""(?:src|href)=["'](?!#)|url\(|@import""", page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert policy[1].split("; ")[0] == "default-src 'none'"
    assert "script-src" not in policy[1]
    assert page.count("&lt;img src=x") > 5


def test_of_many_series_those_with_the_most_alerts_are_drawn_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history_page, "MAX_SERIES_DRAWN", 2)
    monkeypatch.setattr(history_page, "MAX_ALERTS", 4)
    events = [
        run(hour, pipeline=f"tap-{number:03}", streams={})
        for hour in range(0, 40, 2)
        for number in range(100)
        if number != 7 and (number != 31 or hour % 8 == 0)
    ]
    late = monitor(name="late", pipeline=[f"tap-{number:03}" for number in range(100)], freshness={"every": "3h"})
    page, result = _page_of([late], events, 0, 39)
    keys = re.findall(r"<h3>(.*?)</h3>", page)
    assert keys == ["late{pipeline=&#34;tap-031&#34;}", "late{pipeline=&#34;tap-007&#34;}"]
    assert "98 other series are not drawn; they had 0 alerts." in page
    assert f"4 of {len(result.firings)} alerts are shown" in page


def test_a_history_without_events_or_alerts_has_a_page_too() -> None:
    page, _ = _page_of([monitor(name="thin", volume={})], [], 0, 10)
    assert "No series was judged in this time." in page
    assert "No monitor would have sent an alert." in page
