"""Each kind of monitor over a few events: what fires, when, and why."""

from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest

from balog.event import Event
from balog.watch.evaluation import Evaluation
from tests.watch.events import at, evaluate, event, monitor, run, states


def test_freshness_fires_at_the_deadline_and_resolves_with_the_next_success() -> None:
    late = monitor(pipeline="tap-shop", freshness={"every": "1h", "grace": "15m"})
    alerts = evaluate([late], [run(0), run(1), run(1.5, outcome="failed"), run(4)], until=5)
    assert states(alerts) == [("tap-shop", "firing", 2.25), ("tap-shop", "resolved", 4.0)]
    assert alerts[0].reason == "No run has succeeded since 2026-11-23 07:00:00Z; one was due within 1 h 15 min."
    assert alerts[0].previous == "ok"
    assert alerts[1].incident == alerts[0].incident == "tap-shop@2026-11-23T08:15:00.000000Z"


def test_a_run_that_never_starts_is_late_too() -> None:
    late = monitor(pipeline=["tap-shop", "tap-crm", "tap-*"], freshness={"every": "1h"})
    alerts = evaluate([late], [run(0), run(0.9)], until=1.5)
    assert states(alerts) == [("tap-crm", "firing", 1.0)]
    assert "since watching began" in alerts[0].reason


def test_the_clock_of_freshness_stands_still_outside_of_its_calendar() -> None:
    late = monitor(freshness={"every": "2h", "calendar": "Mon-Fri 06:00-10:00 UTC"})
    assert states(evaluate([late], [run(3)], until=24 * 7)) == [("tap-shop", "firing", 25.0)]


def test_freshness_of_a_stream_wants_its_records() -> None:
    late = monitor(stream="orders", freshness={"every": "1h"})
    runs = [run(0, streams={"orders": 5, "users": 5}), run(0.5, streams={"orders": 0, "users": 5})]
    assert states(evaluate([late], runs, until=3)) == [("tap-shop,orders", "firing", 1.0)]


def test_a_late_event_of_an_old_success_does_not_resolve() -> None:
    late = monitor(freshness={"every": "1h"})
    assert states(evaluate([late], [run(0), run(5, outcome="failed"), run(0.5)], until=6)) == [
        ("tap-shop", "firing", 1.0)
    ]


def volumes(values: list[int], **changes: Any) -> list[tuple[str, str, float]]:
    thin = monitor(volume=changes)
    return states(evaluate([thin], [run(hour, streams={"orders": value}) for hour, value in enumerate(values)]))


def test_volume_learns_and_fires_at_a_drop_a_spike_and_zero() -> None:
    usual = [100, 104, 98, 101, 97, 103, 99, 100]
    found = volumes([*usual, 30, 101, 300, 99, 0, 100])
    assert [state for _, state, _ in found] == ["ok", *["firing", "resolved"] * 3]
    assert [hour for *_, hour in found] == [5, 8, 9, 10, 11, 12, 13]


def test_a_zero_fires_where_chance_does_not_explain_it() -> None:
    noisy = [40, 44, 41, 48, 43, 40, 46, 42, 0]
    assert ("tap-shop,orders", "firing", 8.0) in volumes(noisy, sensitivity=20)
    assert ("tap-shop,orders", "firing", 8.0) not in volumes([1, 4, 2, 9, 3, 1, 5, 2, 0])


def test_the_reason_names_the_season() -> None:
    rows = [run(hour, streams={"orders": 5000 if 8 <= hour % 24 < 18 else 400}) for hour in range(24 * 21)]
    alerts = evaluate([monitor(volume={})], [*rows, run(24 * 21, streams={"orders": 0})])
    assert [one.state for one in alerts][-1] == "firing"
    slot = f"{(at(24 * 21)).hour:02}:00"
    assert alerts[-1].reason.endswith(f" were expected for {slot}.")


def test_duration_fires_over_its_history_and_over_a_fixed_limit() -> None:
    slow = monitor(duration={"p95_over": "2x", "over": "10m"})
    runs = [run(hour, duration=60.0 + hour) for hour in range(10)] + [run(10, duration=150.0), run(11, duration=61.0)]
    alerts = evaluate([slow], [*runs, run(12, duration=700.0)])
    assert [(one.state, one.value) for one in alerts] == [("firing", 150.0), ("resolved", 61.0), ("firing", 700.0)]
    assert alerts[0].evidence.runs[-1] == "run-10"


def test_runs_of_less_than_a_second_are_not_slow() -> None:
    slow = monitor(duration={"p95_over": "2x"})
    runs = [run(hour, duration=0.0) for hour in range(6)] + [run(6, duration=0.001), run(7, duration=0.9)]
    alerts = evaluate([slow], [*runs, run(8, duration=2.5)])
    assert [(one.state, one.value) for one in alerts] == [("ok", 0.0), ("firing", 2.5)]


def test_the_percentile_is_numpy_s() -> None:
    import random
    from array import array

    import numpy as np

    from balog.watch.kinds.duration import percentile

    chance = random.Random(3)
    for count in (1, 2, 7, 100):
        values = array("d", [chance.expovariate(1) for _ in range(count)])
        assert percentile(values, 0.95) == pytest.approx(float(np.percentile(values, 95)))


def error(hours: float, message: str, **more: Any) -> Event:
    return event(hours, {"cls_type": "log", "message": message, **more}, level="ERROR")


def test_a_new_error_fires_once_and_resolves_when_it_is_quiet() -> None:
    new = monitor(failures={"new_fingerprint": True})
    events = [error(0, "user 17 not found"), run(23), error(30, "user 99 not found"), error(31, "disk is full")]
    alerts = evaluate([new], [*events, error(31.5, "disk is full"), run(32)], until=40)
    assert [(one.state, one.since[11:16]) for one in alerts] == [
        ("ok", "12:00"),
        ("firing", "13:00"),
        ("resolved", "14:30"),
    ]
    assert alerts[1].reason == "An error that is not in the history: disk is full"


def test_a_second_new_error_is_reported_while_the_first_fires() -> None:
    new = monitor(failures={"new_fingerprint": True})
    errors = [error(25, "disk is full"), error(25.2, "no route to host"), error(25.3, "disk is full")]
    alerts = evaluate([new], [run(0), *errors])
    assert [(one.state, one.previous, one.sequence) for one in alerts] == [
        ("firing", "learning", 1),
        ("firing", "firing", 2),
    ]


def failed(hours: float, **more: Any) -> Event:
    return run(hours, outcome="failed", **more)


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        (1, [("firing", 0.0, 1.0), ("resolved", 1.0, 0.0), ("firing", 2.0, 1.0), ("resolved", 5.0, 0.0)]),
        (2, [("firing", 3.0, 2.0), ("resolved", 5.0, 0.0)]),
        (3, [("firing", 4.0, 3.0), ("resolved", 5.0, 0.0)]),
        (4, []),
    ],
)
def test_failed_runs_in_a_row_fire_at_the_nth_and_resolve_with_the_next_success(
    least: int, expected: list[tuple[str, float, float]]
) -> None:
    broken = monitor(failures={"in_a_row": least})
    runs = [failed(0), run(1), failed(2), failed(3), failed(4), run(5), run(6)]
    alerts = evaluate([broken], [*runs, run(5.5, "tap-crm")], until=100)
    hours = [(one[1], one[2]) for one in states(alerts)]
    assert [(*found, alert.value) for found, alert in zip(hours, alerts)] == expected


def test_the_reason_of_failed_runs_in_a_row_says_how_the_last_one_failed() -> None:
    broken = [monitor(failures={"in_a_row": count}) for count in (1, 2)]
    signal = failed(1, exit_code=137, signal="SIGKILL")
    reasons = [
        [one.reason for one in evaluate([each], [failed(0, problem="no disk."), signal, run(2)])] for each in broken
    ]
    assert reasons == [
        ["The run failed: no disk.", "A run succeeded."],
        ["2 runs failed in a row, the last one with exit code 137 (SIGKILL).", "A run succeeded."],
    ]


def test_a_share_is_learning_until_its_window_has_held_enough_runs() -> None:
    """A daily pipeline never has five runs a day, so its share is never judged and it is not called well."""
    often = monitor(failures={"rate_over": "5%"})
    evaluation = Evaluation([often])
    for day in range(30):
        evaluation.take(run(day * 24, outcome="failed" if day == 9 else "succeeded"))
    assert [series.life.state for series in evaluation.series.values()] == ["learning"]


def test_the_share_of_failed_runs() -> None:
    often = monitor(failures={"rate_over": "30%", "within": "10h", "min_runs": 4})
    outcomes = ["succeeded"] * 4 + ["failed", "failed"] + ["succeeded"] * 2
    alerts = evaluate([often], [run(hour, outcome=one) for hour, one in enumerate(outcomes)], until=20)
    assert [(one.state, one.value) for one in alerts] == [
        ("ok", 0),
        ("firing", pytest.approx(2 / 6)),
        ("resolved", pytest.approx(2 / 7)),
    ]


def test_quarantine_by_share_and_by_count() -> None:
    def rejected(hours: float, count: int) -> Event:
        one = {"stream": "orders", "records": 95, "quarantined": count}
        return run(hours, records=95, streams={}) if count < 0 else _with_streams(hours, [one])

    share = monitor(quarantine={"share_over": "4%"})
    alerts = evaluate([share], [rejected(0, 0), rejected(1, 5), rejected(2, 1)])
    assert [(one.state, one.value) for one in alerts] == [("firing", 0.05), ("resolved", pytest.approx(1 / 96))]
    lines = monitor(quarantine={"over": 3})
    assert [one.state for one in evaluate([lines], [run(0, junk=3), run(1, junk=4)])] == ["firing"]


def _with_streams(hours: float, streams: list[dict[str, Any]]) -> Event:
    made = run(hours)
    made.payload = {**made.payload, "streams": streams, "records": 95}
    return made


def schema(hours: float, properties: dict[str, Any], keys: list[str] | None = None) -> Event:
    value = {"type": "object", "properties": properties}
    made = {"cls_type": "stream_schema", "stream": "orders", "schema": value, "key_properties": keys or []}
    return event(hours, made)


def test_another_key_is_a_breaking_change() -> None:
    moved, one = monitor(schema={"additive": "ignore"}), {"a": {"type": "integer"}, "b": {"type": "integer"}}
    keys = [["a"], ["a", "b"], ["b", "a"], []]
    alerts = evaluate([moved], [schema(hours, one, names) for hours, names in enumerate(keys)])
    assert [(alert.state, alert.value) for alert in alerts] == [
        ("firing", "breaking"), ("resolved", None), ("firing", "breaking"),
    ]  # fmt: skip
    assert alerts[0].reason == "The schema has changed (breaking): its key was a and is a, b."
    assert alerts[2].reason == "The schema has changed (breaking): its key was a, b and is none."
    both = evaluate([moved], [schema(0, one, ["a"]), schema(1, {"b": {"type": "integer"}}, ["b"])])
    assert "its key was a and is b; $.a is gone" in both[0].reason


def test_another_spelling_of_the_same_schema_is_no_change() -> None:
    spellings: list[Any] = [["null", "integer"], ["integer", "null"], "integer", ["integer"]]
    alerts = evaluate(
        [monitor(schema={})], [schema(hours, {"a": {"type": one}}) for hours, one in enumerate(spellings)]
    )
    assert [(alert.state, alert.since[11:13]) for alert in alerts] == [("firing", "08"), ("resolved", "09")]


def test_an_alert_names_the_last_run_also_when_none_came_since_the_alert_before() -> None:
    late = monitor(freshness={"every": "1h"}, link="https://x/{run_id}")
    alerts = evaluate([late], [run(0, run_id="r1"), run(2, run_id="r2")], until=4)
    assert [(alert.state, alert.evidence.runs) for alert in alerts] == [
        ("firing", ["r1"]), ("resolved", ["r1", "r2"]), ("firing", ["r2"]),
    ]  # fmt: skip
    assert alerts[2].evidence.link == "https://x/r2"


def test_reasons_are_sentences_with_percentages() -> None:
    slow = evaluate([monitor(duration={"over": "0.01s"})], [run(0, duration=0.25)])
    assert [alert.reason for alert in slow] == ["The run took 250 ms, over the limit of 10 ms."]
    often = monitor(failures={"rate_over": "5%", "min_runs": 1})
    failed = evaluate([often], [run(0), run(1, outcome="failed")])
    assert failed[-1].reason == "1 of 2 runs failed within 1 d, more than 5%."
    rejected = evaluate(
        [monitor(quarantine={"share_over": "1%"})],
        [run(0, junk=20, records=995)],
    )
    assert [alert.reason for alert in rejected] == ["20 of 1,015 records were rejected: 1.97%, more than 1%."]


def test_schema_changes_are_breaking_or_additive() -> None:
    moved = monitor(schema={"breaking": "critical", "additive": "warning"})
    text, number = {"type": "string"}, {"type": "integer"}
    alerts = evaluate(
        [moved],
        [
            *(schema(0, {"id": number}), schema(1, {"id": number})),
            *(schema(2, {"id": number, "name": text}), schema(3, {"name": text, "id": number})),
            *(schema(4, {"id": text, "name": text}), schema(5, {"id": text}), schema(6, {"id": text})),
        ],
    )
    assert [(one.state, one.severity, one.value) for one in alerts] == [
        ("firing", "warning", "additive"),
        ("resolved", "warning", None),
        ("firing", "critical", "breaking"),
        ("firing", "critical", "breaking"),
        ("resolved", "critical", None),
    ]
    assert "$.name is new" in alerts[0].reason
    assert "$.id" in alerts[2].reason
    assert "$.name is gone" in alerts[3].reason
    assert not evaluate([monitor(schema={"additive": "ignore"})], [schema(0, {}), schema(1, {"a": text})])


def test_a_bookmark_that_does_not_advance() -> None:
    def state(hours: float, value: int) -> Event:
        return run(hours, state={"bookmarks": {"orders": {"id": value}, "users": {"id": hours}}})

    stuck = monitor(state={"unchanged_runs": 3})
    alerts = evaluate([stuck], [state(0, 1), state(1, 2), state(2, 2), state(3, 2), state(4, 3)])
    assert states(alerts) == [("tap-shop,orders", "firing", 3.0), ("tap-shop,orders", "resolved", 4.0)]


def metric(hours: float, value: float, kind: str = "counter", **tags: str) -> Event:
    return event(hours, {"cls_type": "metric", "type": kind, "metric": "retries", "value": value, "tags": tags})


def test_a_counter_is_summed_over_its_window_and_resolves_when_it_is_empty() -> None:
    many = monitor(metric="retr*", threshold={"over": 5, "within": "1h"})
    alerts = evaluate([many], [metric(0, 3), metric(0.5, 3), metric(0.6, 1)], until=3)
    assert [(one.state, one.value, one.since[11:16]) for one in alerts] == [
        ("firing", 6.0, "06:30"),
        ("resolved", 4.0, "07:00"),
    ]


def test_a_gauge_is_its_last_value_for_each_set_of_tags() -> None:
    low = monitor(metric="retries", threshold={"under": 2})
    events = [metric(0, 5, "gauge", host="a"), metric(0, 1, "gauge", host="b"), metric(1, 3, "gauge", host="b")]
    assert [(one.labels["host"], one.state) for one in evaluate([low], events, until=50)] == [
        ("b", "firing"),
        ("b", "resolved"),
    ]


def test_the_spool_of_a_sink_is_a_gauge() -> None:
    full = monitor(metric="sink_spooled", where="payload.tags.sink LIKE 'elastic%'", threshold={"over": 100})
    payload = {
        "cls_type": "metric",
        "type": "gauge",
        "metric": "sink_spooled",
        "value": 500,
        "tags": {"sink": "elastic-1"},
    }
    alerts = evaluate([full], [event(0, payload), event(1, payload | {"tags": {"sink": "statsd"}})])
    assert [(one.labels["sink"], one.state) for one in alerts] == [("elastic-1", "firing")]


def test_pipelines_streams_and_conditions_select() -> None:
    late = monitor(pipeline="tap-*", where="context.application <> 'tap-b'", freshness={"every": "1h"})
    alerts = evaluate([late], [run(0, "tap-a"), run(0, "tap-b"), run(0, "other")], until=2)
    assert [one.labels["pipeline"] for one in alerts] == ["tap-a"]


def test_a_series_without_events_has_no_data() -> None:
    quiet = monitor(duration={"over": "1h"}, no_data="3h")
    assert states(evaluate([quiet], [run(0), run(1)], until=9)) == [("tap-shop", "no_data", 4.0)]


@pytest.mark.parametrize("odd", [{"records": "ten"}, {"command": 7}, {"exit_code": None}, {"duration": None}])
def test_the_outcome_of_a_run_counts_also_if_another_field_is_wrong(odd: dict[str, Any]) -> None:
    wrong = [run(0, **odd), failed(1, run_id="f1", **odd), failed(2, **odd)]
    kinds = [{"freshness": {"every": "3h"}}, {"failures": {"in_a_row": 2}}, {"volume": {}}, {"quarantine": {"over": 0}}]
    monitors = [monitor(name=str(*kind), **kind) for kind in [*kinds, {"duration": {"over": "1h"}}]]
    alerts = evaluate(monitors, [wrong[0], started(0.5, "f1"), *wrong[1:]], until=4)
    fired = [(one.kind, one.since[11:13]) for one in alerts if one.state == "firing"]
    assert fired == [("failures", "08"), ("freshness", "09")]


def test_what_is_no_event_of_a_kind_changes_nothing() -> None:
    wrong = event(0, {"cls_type": "run", "outcome": "odd"})
    alert = event(0, {"cls_type": "alert", "message": "x"}, level="ERROR")
    assert not evaluate([monitor(failures={"new_fingerprint": True})], [wrong, alert])
    odd = event(26, {"cls_type": "run", "message": "disk is full"}, level="ERROR")
    assert states(evaluate([monitor(failures={"new_fingerprint": True})], [failed(0), odd]))[-1][1] == "firing"


def test_properties_that_redaction_replaced_do_not_hide_a_change() -> None:
    from balog.common.redaction import Redactor

    moved = monitor(schema={})
    redactor = Redactor()

    def redacted(hours: float, **properties: Any) -> Event:
        made = schema(hours, {"password": {"type": "string"}, **properties})
        made.payload = msgspec.json.decode(redactor.redact_encoded(bytes(made.raw_payload)))
        return made

    alerts = evaluate([moved], [redacted(0), redacted(1, name={"type": "string"}), redacted(2)])
    assert [(one.state, one.value) for one in alerts] == [("firing", "additive"), ("firing", "breaking")]


def started(hours: float, run_id: str) -> Event:
    context = {"application": "tap-shop", "run_id": run_id}
    return Event.new("c", {"cls_type": "run_started", "command": "tap-shop"}, context=context, timestamp=at(hours))


def test_a_run_that_hangs_fires_at_the_limit_and_the_next_good_one_resolves() -> None:
    slow = monitor(duration={"p95_over": "2x", "min_runs": 2})
    usual = [run(hour, run_id=f"r{hour}", duration=600.0) for hour in range(3)]
    alerts = evaluate([slow], [*usual, started(3, "hangs"), started(3.5, "r4"), run(3.6, run_id="r4", duration=360.0)])
    assert [(one.state, one.since[11:16], one.value) for one in alerts if one.state != "ok"] == [
        ("firing", "09:20", 1200.0),
        ("resolved", "09:36", 360.0),
    ]
    assert alerts[-2].reason == "The run hangs has taken 20 min and has not ended; the limit is 20 min."
    assert alerts[-2].evidence.runs[-1] == "hangs"


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_a_run_that_ends_in_time_does_not_hang(outcome: str) -> None:
    slow = monitor(duration={"over": "1h"})
    ended = run(0.9, outcome=outcome, run_id="r", duration=3000.0)
    assert not evaluate([slow], [started(0, "r"), ended], until=9)
    assert [one.state for one in evaluate([slow], [started(0, "r")], until=9)] == ["firing"]


def test_only_a_repeat_of_the_new_error_puts_off_the_end() -> None:
    new = monitor(failures={"new_fingerprint": True})
    events = [error(0, "no route to host"), error(26, "disk is full"), error(26.5, "no route to host")]
    assert states(evaluate([new], events, until=33))[-1][1:] == ("resolved", 27.0)
    assert states(evaluate([new], [*events, error(26.75, "disk is full")], until=33))[-1][1:] == ("resolved", 27.75)


def test_a_monitor_of_a_stream_judges_no_run_without_streams() -> None:
    events = [run(hour, streams=None, records=100 if hour < 9 else 1) for hour in range(10)]
    assert not evaluate([monitor(stream="orders", volume={})], events)
    assert [one.state for one in evaluate([monitor(volume={})], events)][-1] == "firing"


def test_the_start_of_a_run_belongs_to_the_pipeline_of_its_end() -> None:
    from balog.watch.observations import observe

    one = Event.new("c", {"cls_type": "run_started", "command": "tap-shop"}, context={"application": "other"})
    assert next(observe(one)).pipeline == "tap-shop"


def test_a_firing_alert_never_becomes_less_severe() -> None:
    """A target that gets critical alerts only must get the end of each."""
    shapes = [{"a": "integer"}, {"a": "string"}, {"a": "string", "b": "string"}, {"a": "string", "b": "string"}]
    events = [schema(n, {name: {"type": kind} for name, kind in one.items()}) for n, one in enumerate(shapes)]
    alerts = evaluate([monitor(schema={"breaking": "critical", "additive": "info"})], events)
    assert [one.state for one in alerts] == ["firing", "firing", "resolved"]
    assert {one.severity for one in alerts} == {"critical"}


@pytest.mark.parametrize("year", [1, 1969, 2107, 9999])
@pytest.mark.parametrize("kind", [{"freshness": {"every": "30m"}}, {"volume": {}}, {"duration": {"p95_over": "2x"}}])
def test_an_event_of_a_machine_without_a_clock_breaks_nothing(kind: dict[str, Any], year: int) -> None:
    runs = [run(hours, streams={"orders": 5}) for hours in range(9)]
    odd = run(4, streams={"orders": 5}, run_id="odd")
    odd.header.timestamp = datetime(year, 1, 1, tzinfo=timezone.utc)
    for events in ([*runs[:5], odd, *runs[5:]], sorted([*runs, odd], key=lambda one: one.header.timestamp)):
        for alert in evaluate([monitor(**kind)], events):
            assert "1970-01-01" <= alert.since <= "2100-01-01T00:30"
