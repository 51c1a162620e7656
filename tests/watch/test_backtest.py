"""A backtest gives the alerts that the stream gives, over the same events."""

import random
from datetime import datetime, timedelta
from typing import Any

from balog.event import decode, encode
from balog.watch.evaluation import Evaluation
from balog.watch.history.backtest import run_backtest, select_events
from tests.watch.events import START, at, event, monitor, run, seconds
from tests.watch.history_events import BEGIN, DAYS, lines, monitors

END = BEGIN + timedelta(days=DAYS)


def stream_firings(made: list[str], seed: int) -> list[tuple[Any, ...]]:
    """Feed events one by one, with readings of a virtual clock in between, and pair the changes of states."""
    chance, evaluation = random.Random(seed), Evaluation(monitors())
    alerts, began, found = [], {}, []
    for line in made:
        one = decode(line)
        when = one.header.timestamp.timestamp()
        if evaluation.clock and chance.random() < 0.3:
            alerts += evaluation.advance(chance.uniform(evaluation.clock, when))
        alerts += evaluation.take(one)
    alerts += evaluation.advance(END.timestamp())
    for alert, _ in alerts:
        if alert.state in ("firing", "silenced", "acknowledged"):
            began.setdefault(alert.key, (alert.since, alert.value, alert.reason))
        elif alert.key in began:
            found.append((alert.key, *began.pop(alert.key), alert.since))
    found += [(key, *rest, None) for key, rest in began.items()]
    return sorted(found, key=lambda one: (one[1], one[0]))


def history_firings(events: Any) -> list[tuple[Any, ...]]:
    result = run_backtest(monitors(), events, BEGIN.timestamp(), END.timestamp())
    return [(one.key, text(one.started), one.value, one.reason, text(one.ended)) for one in result.firings]


def text(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat(timespec="microseconds").replace("+00:00", "Z")


def test_ninety_days_in_the_stream_and_over_history_give_the_same_alerts() -> None:
    made = lines(1, every=4)
    expected = stream_firings(made, 1)
    assert history_firings(map(decode, made)) == expected
    assert {key.partition("{")[0] for key, *_ in expected} == {one.name for one in monitors()}


def test_firings_of_all_pipelines_are_listed_also_silenced_ones() -> None:
    made = [decode(line) for line in lines(2, every=8, days=45)]
    named = [*monitors(), monitor(name="never", pipeline=["tap-a", "tap-b"], freshness={"every": "12d"})]
    early = (BEGIN - START) / timedelta(hours=1) - 5
    rows = [encode(event(early, {"cls_type": "other"})), *map(encode, made)]  # nothing is observed in the first one
    times = BEGIN.timestamp() + 10 * 86400, BEGIN.timestamp() + 40 * 86400

    expected = run_backtest(named, map(decode, rows), *times)
    assert {one.labels["pipeline"] for one in expected.firings} >= {"tap-shop", "tap-crm", "tap-a", "tap-b"}
    assert {one.sent is None for one in expected.firings} == {False, True}
    assert all(one.firings for one in expected.monitors)


def test_firings_before_the_time_teach_but_do_not_count() -> None:
    events = [run(hour, streams={"orders": 0 if hour in (30, 60) else 100}) for hour in range(72)]
    thin = monitor(name="thin", volume={})

    result = run_backtest([thin], events, seconds(48), seconds(72))

    assert [(one.started, one.seconds, one.value) for one in result.firings] == [(START + timedelta(hours=60), 3600, 0)]
    assert (result.monitors[0].firings, result.monitors[0].per_week) == (1, 7.0)
    assert result.learned_from == START


def test_a_firing_that_has_not_ended_lasts_to_the_end() -> None:
    late = monitor(name="late", freshness={"every": "90m"})
    result = run_backtest([late], [run(0), run(1), run(20)], seconds(0), seconds(10))

    assert [(one.started, one.ended, one.seconds) for one in result.firings] == [
        (START + timedelta(hours=2.5), None, 7.5 * 3600)
    ]
    assert result.events == 2  # the third comes later
    assert result.monitors[0].longest == 7.5 * 3600


def test_alerts_a_week_are_those_of_the_time_with_events() -> None:
    events = [run(hour, streams={"orders": 0 if hour in (30, 60) else 100}) for hour in range(85)]
    thin = monitor(name="thin", volume={})
    found = [run_backtest([thin], events, seconds(hours), seconds(84.5)) for hours in (-90 * 24, 0, 42, 80)]

    assert [one.with_events / 3600 for one in found] == [84, 84, 42, 4.5]  # at least a day, or all of a shorter time
    assert [one.monitors[0].per_week for one in found] == [4, 4, 4, 0]
    assert run_backtest([thin], [], seconds(0), seconds(168)).with_events == 24 * 3600


def test_an_alert_of_quiet_hours_is_sent_at_their_end_or_never() -> None:
    thin = monitor(name="thin", volume={}, quiet_hours="22:00-06:00")
    zeros = {*range(30, 34), *range(41, 51)}  # from 12:00, and from 23:00 until after the end of the quiet hours
    zeros |= {66}  # at 00:00
    events = [run(hour, streams={"orders": 0 if hour in zeros else 100}) for hour in range(80)]
    result = run_backtest([thin], events, seconds(0), seconds(80))

    sent = [(one.started, one.sent) for one in result.firings]
    assert sent == [
        (at(30), at(30)),
        (at(41), at(48)),
        (at(66), None),
    ]
    assert (result.monitors[0].firings, result.monitors[0].silenced) == (3, 1)
    assert result.monitors[0].per_week == 2 / (79 / 168)


def test_a_success_at_its_deadline_is_in_time_over_history_too() -> None:
    late = monitor(name="late", freshness={"every": "1h"})
    result = run_backtest([late], [run(hour) for hour in range(10)], seconds(0), seconds(10))  # the next may be at 10

    assert result.firings == []


def test_a_series_that_never_learned_enough_is_counted() -> None:
    thin = monitor(name="thin", volume={})
    result = run_backtest([thin], [run(0, streams={"orders": 1})], seconds(0), seconds(10))

    assert (result.monitors[0].series, result.monitors[0].learning) == (1, 1)


def test_monitors_that_events_cannot_answer_for_say_why() -> None:
    waits = monitor(name="lag", lag={"topic": "t", "group": "g", "over": 3})
    result = run_backtest([waits], [event(0, {"cls_type": "log"})], seconds(0), seconds(10))

    assert result.monitors[0].note == "the lag of a topic is not in the events"


def test_only_events_that_a_monitor_judges_are_selected() -> None:
    hushes = {"alert_silence", "alert_acknowledgement"}
    for fields, types, errors in (
        ({"freshness": {"every": "1h"}}, {"run"}, False),
        ({"failures": {"new_fingerprint": True}}, {"run"}, True),
        ({"metric": "x", "threshold": {"over": 1}}, {"metric", "metrics"}, False),
        ({"schema": {}}, {"stream_schema"}, False),
        ({"state": {"unchanged_runs": 2}}, {"run", "state"}, False),
    ):
        found = select_events([monitor(**fields)])
        assert (set(found.types), found.errors) == (types | hushes, errors)
