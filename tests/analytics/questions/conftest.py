"""The same rollups in both engines, of random events with everything that is legal."""

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.oracles.effort import SOAK

MIDNIGHT = datetime(2026, 11, 21, tzinfo=timezone.utc)
NAMES = ["users", "orders", "", "it's", "é\u2028", '"q" {events} :since', "%", "a" * 2000]
METRICS = ["record_count", "http_request_duration", "http_request_count", "sync_duration", "batch_processing_time",
           "pipe_bytes", "pipe_lines", "pipe_read_wait_seconds", "pipe_write_wait_seconds", "own"]  # fmt: skip
# not both 1e300 and -1e300: what is left of small numbers beside them depends on the order of the sum
NUMBERS = [0, -1, 0.5, 3.7, -2.5, 1e300, -1e9, 2**53, 2**62, "7", "nan", "inf", None, {"a": 1}]


class BothEngines(NamedTuple):
    """The same rollups as frames of Spark and of DuckDB."""

    spark: Any
    duckdb: Any


def payload(dice: random.Random) -> dict[str, Any]:
    name = dice.choice(NAMES)
    tags = {"stream": name, "endpoint": dice.choice(NAMES), "http_status_code": dice.choice([200, 500]), "stage": name}
    for tag in list(tags):
        if dice.random() < 0.5:
            del tags[tag]
    value = dice.choice(NUMBERS) if dice.random() < 0.3 else dice.randrange(4000) / 8
    kind = dice.choice(["counter", "timer", "gauge", "odd"])
    counts = [None, 5, 2**62]
    streams = [{"stream": dice.choice(NAMES), "records": dice.choice(counts)} for _ in range(dice.randrange(3))]
    report = {
        "cls_type": "run",
        "command": "tap",
        "outcome": dice.choice(["failed", "succeeded", "stopped"]),
        "duration": dice.choice([2.5, 0, 1e9, -3]),
        "exit_code": dice.choice([0, 1, None]),
        "records": dice.choice([None, 7, 2**62]),
        "bytes": dice.choice([None, 9, 2**62]),
        "streams": streams,
    }
    return dice.choice(
        [
            {"cls_type": "log", "message": f"row {dice.randrange(30)} of {name}"},
            {"cls_type": "metric", "type": kind, "metric": dice.choice(METRICS), "value": value, "tags": tags},
            {"cls_type": "metric", "type": kind, "metric": dice.choice(METRICS), "value": value, "tags": tags},
            {"cls_type": "metrics", "values": [{"name": name, "value": value}, {"name": "bar"}, 5]},
            report,
            {"cls_type": "log", "message": name, "exception": [{"type": "ValueError", "message": name}]},
        ]
    )


def line(dice: random.Random, number: int) -> str:
    if dice.random() < 0.02:
        return dice.choice(["{broken", "[]", '{"schema": "3.0.0"}', "\x00"])
    moment = MIDNIGHT + timedelta(seconds=dice.randrange(-20_000, 20_000), microseconds=dice.choice([0, 1, 999_999]))
    if dice.random() < 0.02:
        moment = moment.replace(year=dice.choice([1583, 1969, 2015, 9998]))
    context = {"run_id": dice.choice(["r1", "r2", "R1", "it's"]), "application": dice.choice(["a", "A", "balog", "é"])}
    header = {
        "id": f"LG{number:022d}",
        "channel": dice.choice(["tap_x.log", "Tap_x.log", "é", '"x"']),
        "timestamp": moment.isoformat(),
        "level": dice.choice(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
        "context": {name: value for name, value in context.items() if dice.random() < 0.8},
    }
    return json.dumps({"schema": "0.1.0", "header": header, "payload": payload(dice)})


@pytest.fixture(scope="session", params=[1, 2] if SOAK else [1])
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[BothEngines]:
    """Rollups of random events in two files."""
    from balog.analytics.duckdb_engine import DuckDBEngine
    from balog.analytics.rollups import Rollups, from_files, split

    dice = random.Random(request.param)
    root: Path = tmp_path_factory.mktemp("questions")
    lines = [line(dice, number) for number in range(900)]
    for number in (900, 901):  # a run whose application is unknown: lists of no values
        whole = json.loads(line(random.Random(4), number))
        whole["header"]["context"] = {"run_id": "alone"}
        lines.append(json.dumps(whole))
    for name, part in (("a.jsonl", lines[:500]), ("b.jsonl", lines[500:])):
        (root / name).write_text("\n".join(part) + "\n")
    found = split(from_files(spark, [str(root)]).coalesce(2))
    with DuckDBEngine() as engine:
        yield BothEngines(found, Rollups(*(engine.table(frame.toArrow()) for frame in found)))
