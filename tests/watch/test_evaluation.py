"""The evaluation as a whole: one answer however the clock is read, silences, incidents, stored state, reloads."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.event import Event
from balog.event.payload import AlertPayload
from balog.watch.evaluation import Evaluation
from balog.watch.series import dump_series
from tests.watch.events import START, at, evaluate, event, monitor, run, seconds, states

MONITORS = [
    monitor(name="late", pipeline="tap-*", freshness={"every": "1h", "grace": "10m"}),
    monitor(name="thin", volume={}, **{"for": "30m"}),
    monitor(name="slow", duration={"over": "5m"}, resolve_after="90m", no_data="6h"),
    monitor(name="fail", failures={"rate_over": "40%", "min_runs": 2, "within": "4h", "new_fingerprint": True}),
    monitor(name="broken", failures={"in_a_row": 2}),
    monitor(name="sum", metric="retries", threshold={"over": 10, "within": "2h"}),
]


def events_of(seed: int, count: int = 60) -> list[Event]:
    chance = random.Random(seed)
    made, hours = [], 0.0
    for number in range(count):
        hours += chance.choice([0.0, 0.2, 0.9, 1.3, 4.0])
        pipeline = chance.choice(["tap-a", "tap-b"])
        if chance.random() < 0.2:
            payload = {"cls_type": "metric", "type": "counter", "metric": "retries", "value": chance.randrange(9)}
            made.append(event(hours, payload, pipeline))
            continue
        outcome = "failed" if chance.random() < 0.25 else "succeeded"
        streams = {"orders": chance.choice([100, 101, 99, 10])}
        duration = chance.choice([60.0, 60.0, 900.0])
        made.append(run(hours, pipeline, outcome, streams, f"r{number}", duration=duration))
    return made


def plain(alerts: list[Any]) -> list[Any]:
    return [msgspec.to_builtins(getattr(one, "payload", one)) for one in alerts]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), reads=st.lists(st.floats(0, 60), max_size=30))
def test_the_alerts_do_not_depend_on_how_often_the_clock_is_read(seed: int, reads: list[float]) -> None:
    events = events_of(seed)
    evaluation, alerts = Evaluation(MONITORS), []
    reads = sorted(reads)
    for one in events:
        while reads and seconds(reads[0]) < one.header.timestamp.timestamp():
            if evaluation.clock:
                alerts += evaluation.advance(seconds(reads[0]))
            reads.pop(0)
        alerts += evaluation.take(one)
    alerts += evaluation.advance(seconds(500))

    assert plain(alerts) == plain(evaluate(MONITORS, events, until=500))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 59))
def test_a_stored_state_continues_as_if_nothing_had_happened(seed: int, cut: int) -> None:
    events = events_of(seed)
    first, alerts = Evaluation(MONITORS), []
    for one in events[:cut]:
        alerts += first.take(one)
    stored = [dump_series(series) for series in first.series.values()]
    second = Evaluation(MONITORS)
    assert len(second.restore(first.clock, first.silences, stored)) == len(stored)
    for one in events[cut:]:
        alerts += second.take(one)
    alerts += second.advance(seconds(500))

    assert plain(alerts) == plain(evaluate(MONITORS, events, until=500))


def test_each_alert_of_a_series_has_the_next_number_and_the_state_before() -> None:
    last: dict[str, AlertPayload] = {}
    for alert in evaluate(MONITORS, events_of(7, 200), until=2000):
        before = last.get(alert.key)
        assert alert.sequence == (before.sequence + 1 if before else 1)
        if before:
            assert alert.previous == before.state
        last[alert.key] = alert
    assert len(last) > 5


def count_of(hours: float, value: int) -> Event:
    return event(hours, {"cls_type": "metric", "type": "counter", "metric": "retries", "value": value})


def test_a_value_that_enters_the_window_when_another_leaves_it_changes_no_state() -> None:
    many = monitor(metric="retries", threshold={"over": 100, "within": "1h"})
    tens = [count_of(number / 6, 18) for number in range(12)]  # six of them are 108, from the sixth on
    assert states(evaluate([many], tens, until=5)) == [
        ("tap-shop,retries", "firing", pytest.approx(5 / 6)),
        ("tap-shop,retries", "resolved", pytest.approx(2)),
    ]


def test_a_success_at_its_deadline_is_in_time() -> None:
    late = monitor(freshness={"every": "1h"}, no_data="1h")
    assert states(evaluate([late], [run(hour) for hour in range(5)], until=4.9)) == []
    assert states(evaluate([late], [run(hour) for hour in range(5)], until=5)) == [("tap-shop", "firing", 5.0)]


def test_a_run_at_the_end_of_a_wait_comes_before_that_end() -> None:
    pending = monitor(duration={"over": "5m"}, **{"for": "1h"})
    runs = [run(0, duration=900.0), run(1, duration=60.0)]
    assert [alert.state for alert in evaluate([pending], runs, until=9)] == ["pending", "ok"]

    resolving = monitor(duration={"over": "5m"}, resolve_after="1h")
    runs = [run(0, duration=900.0), run(1, duration=60.0), run(2, duration=900.0)]
    assert [alert.state for alert in evaluate([resolving], runs, until=9)] == ["firing"]


def test_an_alert_resolves_with_the_value_of_then() -> None:
    many = monitor(metric="retries", threshold={"over": 100, "within": "1h"}, resolve_after="2h")
    last = evaluate([many], [count_of(0, 108), count_of(0.9, 7), count_of(0.95, 2)], until=9)[-1]
    assert (last.state, last.value, last.reason) == ("resolved", 0, "0 is within its limits.")

    slow = monitor(duration={"over": "5m"})
    durations = [900, 60, 900, 60, 900, 60, 61, 62]
    runs = [run(number / 10, duration=float(seconds)) for number, seconds in enumerate(durations)]
    last = evaluate([slow], runs, until=3)[-1]
    assert (last.state, last.value, last.reason) == ("resolved", 62, "The run took 1 min 2 s.")


def test_pending_comes_before_firing() -> None:
    late = monitor(freshness={"every": "1h"}, **{"for": "30m"})
    assert states(evaluate([late], [run(0)], until=3)) == [("tap-shop", "pending", 1.0), ("tap-shop", "firing", 1.5)]
    assert states(evaluate([late], [run(0), run(1.2)], until=2)) == [
        ("tap-shop", "pending", 1.0),
        ("tap-shop", "ok", 1.2),
    ]


def silence(hours: float, match: str, until: float, kind: str = "alert_silence") -> Event:
    return event(hours, {"cls_type": kind, "match": match, "until": at(until).isoformat(), "by": "me"})


def test_a_silence_hides_an_alert_until_it_ends() -> None:
    late = monitor(name="late", freshness={"every": "1h"})
    assert states(evaluate([late], [run(0), silence(0.5, "lat*", 3)], until=5)) == [
        ("tap-shop", "silenced", 1.0),
        ("tap-shop", "firing", 3.0),
    ]
    assert states(evaluate([late], [run(0), silence(1.5, 'late{pipeline="tap-shop"}', 3), run(2)], until=2.5)) == [
        ("tap-shop", "firing", 1.0),
        ("tap-shop", "silenced", 1.5),
        ("tap-shop", "resolved", 2.0),
    ]


def test_an_acknowledgement_ends_with_its_alert() -> None:
    late = monitor(name="late", freshness={"every": "1h"})
    acknowledged = silence(1.5, "late", 99, "alert_acknowledgement")
    assert states(evaluate([late], [run(0), acknowledged, run(2)], until=3.5)) == [
        ("tap-shop", "firing", 1.0),
        ("tap-shop", "acknowledged", 1.5),
        ("tap-shop", "resolved", 2.0),
        ("tap-shop", "firing", 3.0),
    ]


def test_a_pipeline_that_is_down_is_one_incident() -> None:
    late = monitor(name="late", stream="s*", freshness={"every": "1h"})
    alerts = evaluate([late], [run(0, streams={"s1": 1, "s2": 1}), run(0, "tap-b", streams={"s1": 1})], until=2)
    shop = {one.incident for one in alerts if one.labels["pipeline"] == "tap-shop"}
    assert len(alerts) == 3
    assert len(shop) == 1
    again = evaluate(
        [late],
        [run(0, streams={"s1": 1, "s2": 1}), run(2, streams={"s1": 1, "s2": 1}), run(2.1, streams={"s1": 1, "s2": 1})],
        until=5,
    )
    assert len({one.incident for one in again}) == 2
    counts = [(one.state, one.incident_firing) for one in again]
    assert counts == [("firing", 1), ("firing", 2), ("resolved", 1), ("resolved", 0), ("firing", 1), ("firing", 2)]


def test_an_event_from_the_future_does_not_move_the_clock() -> None:
    evaluation = Evaluation([monitor(freshness={"every": "1h"})])
    evaluation.take(run(0))
    assert not evaluation.take(run(500, "tap-b"), latest=seconds(0.5))
    assert evaluation.clock == seconds(0.5)
    assert [one.payload.labels["pipeline"] for one in evaluation.advance(seconds(1.6))] == ["tap-shop", "tap-b"]


def test_other_monitors_keep_the_series_of_the_same_name_and_kind() -> None:
    evaluation = Evaluation(
        [monitor(name="a", freshness={"every": "1h"}), monitor(name="b", freshness={"every": "1h"})]
    )
    evaluation.take(run(0))
    evaluation.advance(seconds(2))
    alerts = evaluation.replace_monitors([monitor(name="a", freshness={"every": "3h"}), monitor(name="b", volume={})])
    assert [(one.payload.monitor, one.payload.state, one.payload.reason) for one in alerts] == [
        ("b", "resolved", "The monitor was removed.")
    ]
    assert [(one.payload.monitor, one.payload.state) for one in evaluation.take(run(2.5))] == [("a", "resolved")]


def test_a_changed_time_of_freshness_counts_at_once() -> None:
    evaluation = Evaluation([monitor(freshness={"every": "1d"})])
    evaluation.take(run(0))
    evaluation.advance(seconds(1))
    evaluation.replace_monitors([monitor(freshness={"every": "90m"})])
    assert [(one.payload.state, one.time) for one in evaluation.advance(seconds(3))] == [("firing", seconds(1.5))]


def test_labels_and_links() -> None:
    late = monitor(freshness={"every": "1h"}, labels={"team": "data"}, link="https://x/{pipeline}/{run_id}")
    alert = evaluate([late], [run(0, "tap/ä", run_id="r 1")], until=2)[0]
    assert alert.labels == {"team": "data", "pipeline": "tap/ä"}
    assert alert.evidence.link == "https://x/tap%2F%C3%A4/r%201"
    assert START.year == 2026


QUIET = monitor(name="late", freshness={"every": "1h"}, quiet_hours="08:00-10:00")  # 2 to 4 hours after the start


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([0, 5], ["firing 1", "resolved 5"]),  # it began before, and people hear of its end
        ([0.5, 1.25, 5], ["silenced 2.25", "firing 4", "resolved 5"]),
        ([0.5, 1.25, 3.5], ["silenced 2.25", "resolved 3.5"]),
        ([0.5, 1.25, 2, 2.75, 3.5, 6], ["firing 4.5", "resolved 6"]),
    ],
)
def test_quiet_hours_silence_an_alert_that_begins_in_them(runs: list[float], expected: list[str]) -> None:
    alerts = evaluate([QUIET], [run(hour) for hour in runs])
    assert [f"{state} {hour:g}" for _, state, hour in states(alerts)] == expected


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), cut=st.integers(0, 60))
def test_quiet_hours_are_the_same_after_a_restart(seed: int, cut: int) -> None:
    events = events_of(seed)
    monitors = [msgspec.structs.replace(one, quiet_hours="10:00-03:00 Europe/Berlin") for one in MONITORS]
    first = Evaluation(monitors)
    alerts = [alert for one in events[:cut] for alert in first.take(one)]
    second = Evaluation(monitors)
    second.restore(first.clock, first.silences, [dump_series(series) for series in first.series.values()])
    alerts += [alert for one in events[cut:] for alert in second.take(one)]
    assert plain(alerts) == plain(evaluate(monitors, events))
