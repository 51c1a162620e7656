"""Failed runs in a row against a recount: in the stream, over history, after restarts, twice and in another order."""

import random
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import pytest

from balog.event import Event
from balog.watch.evaluation import Evaluation
from balog.watch.history.backtest import run_backtest
from balog.watch.source import evaluate_events
from balog.watch.state.sqlite import SqliteWatchStore
from balog.watch.watcher import Watcher
from tests.oracles.effort import seeds
from tests.watch.events import START, monitor, run, seconds
from tests.watch.test_watcher import Clock, Target

DAYS = 90
Series = list[tuple[str, float, float | None]]
"""Pipeline, hour of the nth failure, and hour of the success that ends it."""


def history(seed: int) -> list[Event]:
    """Return three months of runs, eight or one a day, ordered by time; they fail singly and in series."""
    chance, made = random.Random(seed), []
    for number in range(10):
        every, left = (3, 0) if number < 6 else (24, 0)
        for slot in range(0, DAYS * 24, every):
            if chance.random() < 0.008 * every**0.5:
                left = chance.choice([1, 1, 1, 2, 3, 6])
            hours = slot + number / 100 + chance.uniform(0, 0.5)
            made.append(run(hours, f"tap-{number}", "failed" if left else "succeeded", run_id=f"{number}-{slot}"))
            left = max(left - 1, 0)
    return sorted(made, key=lambda event: event.header.timestamp)


def hour(event: Event) -> float:
    return round((event.header.timestamp - START).total_seconds() / 3600, 6)


def recount(events: list[Event], least: int) -> Series:
    """Return the series of failed runs of each pipeline that reach a length."""
    by_pipeline, found = defaultdict(list), list[tuple[str, float, float | None]]()
    for one in events:
        by_pipeline[one.header.context["application"]].append((hour(one), one.payload["outcome"] == "failed"))
    for pipeline, runs in by_pipeline.items():
        groups = [(is_failed, [when for when, _ in same]) for is_failed, same in groupby(runs, key=lambda one: one[1])]
        for position, (is_failed, times) in enumerate(groups):
            if is_failed and len(times) >= least:
                end = groups[position + 1][1][0] if position + 1 < len(groups) else None
                found.append((pipeline, times[least - 1], end))
    return sorted(found)


def reported(alerts: list[tuple[str, str, float]]) -> Series:
    """Return the series of alerts, each a pipeline, a state and an hour."""
    open_since, found = dict[str, float](), list[tuple[str, float, float | None]]()
    for pipeline, state, when in alerts:
        if state == "firing":
            assert pipeline not in open_since, "one series is reported twice"
            open_since[pipeline] = when
        elif state == "resolved":
            found.append((pipeline, open_since.pop(pipeline), when))
    return sorted([*found, *((pipeline, when, None) for pipeline, when in open_since.items())])


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("seed", seeds(3))
def test_each_series_of_failed_runs_is_reported_once(tmp_path: Path, seed: int, least: int) -> None:
    events, broken = history(seed), monitor(failures={"in_a_row": least})
    expected = recount(events, least)
    assert len(expected) > 3

    # Over history: a file of events, each twice, and a backtest.
    alerts = [*evaluate_events(Evaluation([broken]), [same for one in events for same in (one, one)])]
    shown = [
        (one.payload.labels["pipeline"], one.payload.state, round((one.time - seconds(0)) / 3600, 6)) for one in alerts
    ]
    assert reported(shown) == expected
    firings = run_backtest([broken], events, seconds(0), seconds(DAYS * 24 + 24)).firings
    assert sorted(
        (one.labels["pipeline"], round((one.started - START).total_seconds() / 3600, 6)) for one in firings
    ) == [one[:2] for one in expected]

    # In the stream: events that come twice, and restarts.
    chance, target, first = random.Random(seed), Target(), 0
    while first < len(events):
        store, clock = SqliteWatchStore(tmp_path / "w.sqlite"), Clock(DAYS * 24 + 24)
        watcher = Watcher([broken], store, {"": target.using(lambda: None)}, clock)
        for _ in range(3):
            batch = events[first : first + 400]
            watcher.handle(batch)
            watcher.handle(chance.sample(batch, len(batch) // 3))
            first += 400
    shown = [(one.payload["labels"]["pipeline"], one.payload["state"], hour(one)) for one in target.ids.values()]
    assert reported(shown) == expected


@pytest.mark.parametrize("seed", seeds(20))
def test_the_order_in_which_runs_come_does_not_change_the_end(seed: int) -> None:
    """The number of failed runs since the last success, and so the state, is that of the order of the runs' times."""
    chance = random.Random(seed)
    events = [run(number, outcome=chance.choice(["failed", "failed", "succeeded"])) for number in range(12)]
    length = next((number for number, one in enumerate(reversed(events)) if one.payload["outcome"] == "succeeded"), 12)
    chance.shuffle(events)
    evaluation = Evaluation([monitor(failures={"in_a_row": 2})])
    for one in [*events, *events[:3]]:
        evaluation.take(one)
    (series,) = evaluation.series.values()
    assert (len(series.memory.failed), series.is_alerting) == (length, length >= 2)
