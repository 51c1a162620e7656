"""Suggested monitors are a valid file, keep to the wanted number of alerts, and find a fault that comes later."""

import random
from pathlib import Path

from balog.event import Event, decode
from balog.watch.config.config_check import load_monitors
from balog.watch.history.backtest import run_backtest
from balog.watch.history.suggest import suggest, write_monitors
from tests.watch.events import at, run, seconds
from tests.watch.history_events import BEGIN, lines

HOURS = 24 * 35


def office(pipeline: str = "tap-shop") -> list[Event]:
    """Return the runs of five weeks: hourly on week days, with more rows by day."""
    chance, made = random.Random(4), []
    for hour in range(HOURS):
        if at(hour).weekday() < 5:
            rows = (1000 if 8 <= at(hour).hour < 18 else 100) + chance.randrange(-5, 5)
            made.append(run(hour, pipeline, streams={"orders": rows}, duration=60.0 + chance.randrange(10)))
    return made


def test_suggestions_follow_the_history() -> None:
    events, times = office(), (seconds(0), seconds(HOURS))
    found = {one.fields["name"]: one for one in suggest(events, *times, 0.5)}

    late = found["tap-shop-arrives"]
    assert late.fields["freshness"] == {"every": "1h", "grace": "15m", "calendar": "Mon-Fri"}
    assert late.firings == 0
    assert found["tap-shop-rows"].fields["volume"] == {"sensitivity": 3.5}
    assert found["tap-shop-slow"].fields["duration"]["p95_over"] == "1.5x"
    assert found["sync-fails"].fields["failures"] == {"in_a_row": 1}
    assert "records-are-rejected" not in found
    assert "schema-moved" not in found


def test_the_file_is_valid_and_gives_the_alerts_that_its_comments_say(tmp_path: Path) -> None:
    events = [decode(line) for line in lines(3, every=6, days=40)]
    since, until = BEGIN.timestamp(), BEGIN.timestamp() + 40 * 86400
    found = suggest(events, since, until, 1.0)
    text = write_monitors(found, since, until)
    (tmp_path / "monitors.yaml").write_text(text, encoding="utf-8")
    monitors = load_monitors(tmp_path / "monitors.yaml")

    result = run_backtest(monitors, events, since, until)
    assert [(one.name, one.firings) for one in result.monitors] == [(one.fields["name"], one.firings) for one in found]
    assert all(one.per_week <= 1.0 for one in found if one.is_within)
    assert {one.kind for one in monitors} == {
        *("freshness", "volume", "duration", "failures", "quarantine", "schema", "state")
    }
    for one in found:
        assert f"# {one.firings} alert" in text


def test_a_suggested_file_finds_a_later_outage(tmp_path: Path) -> None:
    events, (since, until) = office(), (seconds(0), seconds(HOURS))
    (tmp_path / "m.yaml").write_text(write_monitors(suggest(events, since, until, 0.5), since, until))
    monitors = load_monitors(tmp_path / "m.yaml")

    zero = run(HOURS + 1, "tap-shop", streams={"orders": 0})
    events += [run(HOURS, "tap-shop", streams={"orders": 100}), zero]
    result = run_backtest(monitors, events, until, until + 36000)

    assert {one.monitor for one in result.firings} == {"tap-shop-arrives", "tap-shop-rows"}


def test_names_that_look_like_globs_or_variables_are_literal(tmp_path: Path) -> None:
    events = [run(hour, "tap-[a]*${HOME}", streams={"orders": 10}) for hour in range(50)]
    (tmp_path / "m.yaml").write_text(write_monitors(suggest(events, seconds(0), seconds(50), 0.5), 0.0, 1.0))
    monitors = load_monitors(tmp_path / "m.yaml")

    result = run_backtest(monitors, events, seconds(0), seconds(50))
    assert {one.name: one.series for one in result.monitors}["tap-[a]*${HOME}-rows"] == 1


def test_no_events_give_no_monitors(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(write_monitors(suggest([], 0.0, 86400.0, 0.5), 0.0, 86400.0))
    assert load_monitors(tmp_path / "m.yaml") == []
