"""What a report's charts show and leave out, against a recount in plain Python."""

import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics.reporting.query import HOUR, Period, parse_query
from balog.analytics.reporting.spark_report import make_report
from balog.analytics.reporting.time_ranges import axis_period, ranks
from tests.oracles.effort import examples, seeds

pytestmark = pytest.mark.spark

NOW = datetime(2026, 11, 20, 14, 37, tzinfo=timezone.utc)
STEPS = {3600: "hour", 86400: "day", 604800: "week"}


def far(chance: random.Random, events: int) -> list[datetime]:
    """Return the times of up to 0.4 % of the events, far from all others on either side."""
    old = [NOW - timedelta(days=chance.uniform(100, 400)) for _ in range(events * 4 // 1000)]
    texts = [chance.choice(["0001-01-01T00:00:00", "2015-03-01T12:00:00", "1969-12-31T23:59:59"])]
    texts += chance.sample(["2099-01-01T00:00:00", "9999-12-31T23:59:59.999999"], chance.randint(0, 2))
    return [*old[1:], *(datetime.fromisoformat(text).replace(tzinfo=timezone.utc) for text in texts)]


@pytest.mark.parametrize("seed", seeds(3))
def test_what_is_inside_and_outside_of_the_axes_is_what_plain_python_counts(
    spark: Any, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    events, days = chance.choice([(40, 0.5), (3000, 6), (4000, 40)])
    near = [NOW - timedelta(days=chance.uniform(0, days)) for _ in range(events)]
    times = near + far(chance, events)
    chance.shuffle(times)
    lines, made = [], []
    for number, when in enumerate(times):
        level, records = chance.choice(["INFO", "ERROR"]), chance.randint(0, 9)
        made.append((when, level == "ERROR", records))
        payload = {"cls_type": "metric", "type": "counter", "metric": "record_count", "value": records}
        header = {"id": f"LG{number:022d}", "channel": "t.log", "level": level, "composition": False,
                  "timestamp": when.isoformat().replace("+00:00", "Z"), "context": {"application": "t"}}  # fmt: skip
        lines.append(json.dumps({"schema": "0.1.0", "header": header, "payload": payload}))
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    found = make_report(spark, [str(tmp_path)], parse_query(now=NOW))

    def count(some: list[tuple[datetime, bool, int]]) -> tuple[int, int, int]:
        return len(some), sum(error for _, error, _ in some), sum(records for _, _, records in some)

    assert (found.events, found.errors, sum(row.events for row in found.channels)) == (*count(made)[:2], len(made))
    assert {(row.metric, row.sum) for row in found.metrics} == {("record_count", count(made)[2])}
    assert found.shown is not None
    since, until = found.shown.since, found.shown.until
    assert since <= min(near)
    assert max(near) < until
    assert until - since <= 2 * timedelta(days=days) + timedelta(days=3)
    for side, some in (
        ("before", [one for one in made if one[0] < since]),
        ("after", [one for one in made if one[0] >= until]),
    ):
        told = [row for row in found.outside if row.side == side]
        assert [(row.events, row.errors, row.records) for row in told] == ([count(some)] if some else [])
        assert [(row.first, row.last) for row in told] == ([(min(some)[0], max(some)[0])] if some else [])
    inside: dict[datetime, list[tuple[datetime, bool, int]]] = {}
    for one in made:
        if since <= one[0] < until:
            at = one[0].replace(minute=0, second=0, microsecond=0)
            if STEPS[int(found.step)] != "hour":
                at = at.replace(hour=0)
            if STEPS[int(found.step)] == "week":
                at -= timedelta(days=at.weekday())
            inside.setdefault(at, []).append(one)
    assert {row.at: (row.events, row.errors, row.records) for row in found.throughput} == {
        at: count(some) for at, some in inside.items()
    }


@pytest.mark.parametrize("seed", seeds(2))
def test_events_that_are_spread_are_all_shown(spark: Any, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    days = chance.choice([3, 300])
    lines = []
    for number in range(chance.choice([12, 600])):
        when = NOW - timedelta(days=chance.uniform(0, days))
        header = {"id": f"LG{number:022d}", "channel": "t.log", "level": "INFO", "composition": False,
                  "timestamp": when.isoformat(), "context": {}}  # fmt: skip
        lines.append(json.dumps({"schema": "0.1.0", "header": header, "payload": {"cls_type": "log"}}))
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    found = make_report(spark, [str(tmp_path)], parse_query(now=NOW))
    assert (found.shown, found.outside) == (found.period, [])
    assert sum(row.events for row in found.throughput) == found.events == len(lines)


@pytest.mark.parametrize("events", [1, 2, 9, 10, 12, 199, 200, 201, 5000])
def test_the_middle_leaves_out_half_a_percent_on_either_side_and_one_of_ten_events_at_least(events: int) -> None:
    low, high = ranks(events)
    tail = 0 if events < 10 else max(events // 200, 1)
    assert (round(low * (events - 1)), round(high * (events - 1))) == (tail, events - 1 - tail)


@examples(200)
@given(*(st.integers(0, 10_000) for _ in range(3)))
def test_the_axes_hold_the_middle_and_are_all_of_the_period_or_less_than_half(a: int, b: int, c: int) -> None:
    start = datetime(2000, 1, 1, tzinfo=timezone.utc)
    first, last = start + a * HOUR, start + (a + b) * HOUR
    period, middle = Period(start, last + (c + 1) * HOUR), Period(first, last + HOUR)
    shown = axis_period(period, middle)
    assert period.since <= shown.since <= middle.since
    assert middle.until <= shown.until <= period.until
    assert shown == period or (2 * shown.length < period.length and period.length > timedelta(days=8))
    assert shown == period or shown.length <= max(2 * middle.length, middle.length + timedelta(days=2))
