"""Rollups of batches, merged, against one rollup of everything."""

import json
import random
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from balog.analytics.reading.scan import scan
from balog.analytics.reading.tasks import Slice
from balog.analytics.rollups.frames import ROLLUP, Rollups, merge, split
from balog.analytics.rollups.worker import RollupQuery

MIDNIGHT = datetime(2026, 11, 21, tzinfo=timezone.utc)


def history(dice: random.Random, make: Any) -> list[dict[str, Any]]:
    """Give events of some runs around midnight: every kind that a rollup has rows for, and times that come twice."""

    def event() -> dict[str, Any]:
        number, stream = dice.randrange(4000), dice.choice(["users", "orders", None])
        payload = dice.choice(
            [
                {"cls_type": "log", "message": f"row {number} of {stream}"},
                {"cls_type": "metric", "type": "timer", "metric": "http_request_duration", "value": number / 8,
                 "tags": {"endpoint": stream, "http_status_code": dice.choice([200, 500])}},
                {"cls_type": "metric", "type": "counter", "metric": "record_count", "value": number,
                 "tags": {"stream": stream}},
                {"cls_type": "metric", "metric": "odd", "value": dice.choice(["7", "nan", None, 1e308 * 10, {"a": 1}])},
                {"cls_type": "metrics", "values": [{"name": "foo", "value": str(number)}, {"name": "bar"}, 5]},
                {"cls_type": "run", "outcome": dice.choice(["failed", "succeeded"]), "duration": number / 4,
                 "exit_code": 0, "command": "tap", "records": number, "bytes": number * 9,
                 "streams": [{"stream": "users", "records": number}]},
                {"cls_type": "consumer_failure", "outcome": "dead", "reason": f"gave up at {number}"},
            ]
        )  # fmt: skip
        return dict(
            make(
                payload,
                timestamp=(MIDNIGHT + timedelta(seconds=dice.randrange(-7200, 7200))).isoformat(),
                channel=dice.choice(["tap_x.log", "tap_y.log"]),
                level=dice.choice(["INFO", "ERROR", "CRITICAL"]),
                context=dice.choice([{}, {"run_id": f"r{dice.randrange(3)}", "application": dice.choice(["a", "b"])}]),
            )
        )

    return [event() for _ in range(300)]


@pytest.fixture
def roll(write: Any, spark: Any) -> Any:
    """Gives the rollup rows of batches of lines, a file each, as one frame."""

    def roll(batches: Iterable[list[Any]]) -> Any:
        found: list[pa.RecordBatch] = []
        for number, lines in enumerate(batches):
            path = write(f"{number}.jsonl", *lines)
            found += scan([Slice(str(path))], RollupQuery())
        return spark.createDataFrame(pa.Table.from_batches(found), ROLLUP)

    return roll


def sorted_rows(rollups: Rollups) -> dict[str, list[str]]:
    """Give every frame's rows as text; a sketch as the values that it holds, since their order is of no meaning."""
    from datasketches import kll_doubles_sketch

    def plain(row: Any) -> str:
        values = row.asDict(recursive=True)
        if values.get("sketch") is not None:
            sketch = kll_doubles_sketch.deserialize(bytes(values["sketch"]))
            values["sketch"] = sorted(sketch)
        return json.dumps(values, default=str)

    return {name: sorted(map(plain, frame.collect())) for name, frame in rollups._asdict().items()}


def unplaced(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """Give rows without the places of bad lines."""
    bad = [{**json.loads(row), "file": "", "offset": 0} for row in rows["quarantine"]]
    return {**rows, "quarantine": [json.dumps(row) for row in bad]}


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, 2])
def test_batches_merged_in_any_order_are_one_rollup_of_everything(make: Any, roll: Any, seed: int) -> None:
    dice = random.Random(seed)
    lines: list[Any] = history(dice, make)
    whole = sorted_rows(merge(split(roll([lines]))))
    assert all(whole[name] for name in ("events", "metrics", "errors", "runs"))
    dice.shuffle(lines)
    cuts = sorted(dice.choices(range(len(lines)), k=12))
    batches = [lines[start:end] for start, end in zip([0, *cuts], [*cuts, len(lines)])]
    rows = roll(batches)
    merged = sorted_rows(merge(split(rows)))
    assert unplaced(merged) == unplaced(whole)  # the same lines lie in other files
    some, others = (rows.where(f"coalesce(hour(hour), 1) {sign} 0") for sign in ("=", "<>"))
    twice = [merge(split(part)) for part in (some, others)]
    united = Rollups(*(one.unionByName(other) for one, other in zip(*twice)))
    assert sorted_rows(merge(united)) == merged


@pytest.mark.spark
def test_a_late_event_changes_rows_of_its_hour_alone(make: Any, roll: Any) -> None:
    lines: list[Any] = history(random.Random(3), make)
    before = sorted_rows(merge(split(roll([lines]))))
    late = make(timestamp="2026-11-20T22:59:59.999999Z", level="ERROR", context={"run_id": "r0", "application": "a"})
    after = sorted_rows(merge(split(roll([lines, [late]]))))
    changed = {row for name in after for row in set(after[name]) ^ set(before[name])}
    assert {json.loads(row)["hour"][:13] for row in changed} == {"2026-11-20 22"}


@pytest.mark.spark
def test_bad_lines_are_merged_by_reason_with_the_first_place(make: Any, roll: Any) -> None:
    rows = roll([[make(), b"{ broken", b"{ broken"], [b"{ broken", b"\xff"]])
    broken, undecodable = sorted(merge(split(rows)).quarantine.collect(), key=lambda row: row.lines, reverse=True)
    assert (broken.lines, undecodable.lines) == (3, 1)
    assert broken.file.endswith("0.jsonl")
    assert broken.offset > 0


@pytest.mark.spark
def test_a_frame_of_something_else_is_refused_by_what_it_lacks(spark: Any) -> None:
    from balog.common.errors import ConfigError

    with pytest.raises(ConfigError, match="no column example, kind, quarantine, run, sketch"):
        split(spark.range(1))
