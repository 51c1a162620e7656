"""Dumps in which events come again, counted by a recount in plain Python that keeps each id once."""

import json
import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.oracles.effort import seeds

pytestmark = pytest.mark.spark

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def write(root: Path, chance: random.Random, share: float) -> list[dict[str, Any]]:
    """Write events over files, a share of them again: beside themselves, in other files, once or often."""
    files: list[list[str]] = [[] for _ in range(7)]
    events = []
    for number in range(3000):
        payload: dict[str, Any] = {"cls_type": "metric", "type": chance.choice(["timer", "counter"]), "value": number}
        payload |= {"metric": chance.choice(["wait", "record_count"]), "tags": {"stream": "s"}}
        level = chance.choice(["INFO", "ERROR"])
        if level == "ERROR":
            payload = {"cls_type": "log", "message": f"it broke at {number}", "error_type": chance.choice("AB")}
        header = {
            "id": f"LG{number:022d}" if chance.random() < 0.9 else f"LG{chance.randrange(1 << 60):x}",
            "channel": chance.choice(["a", "b", "é"]),
            "timestamp": (NOON + timedelta(seconds=number)).isoformat(),
            "level": level,
            "context": {"application": "x", "run_id": f"r{number % 3}"},
        }
        event = {"schema": "0.1.0", "header": header, "payload": payload}
        events.append(event)
        copies = 1 + (chance.choice([1, 1, 1, 5]) if chance.random() < share else 0)
        for _ in range(copies):
            chance.choice(files).append(json.dumps(event))
    for number, lines in enumerate(files):
        chance.shuffle(lines)
        lines.insert(0, "{broken")
        (root / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
    return events


@pytest.mark.parametrize("seed", seeds(2))
def test_each_id_is_counted_once_by_every_way_of_counting(spark: Any, tmp_path: Path, seed: int) -> None:
    from balog.analytics import functions, rollups
    from balog.analytics.reporting.query import parse_query
    from balog.analytics.reporting.spark_report import make_report

    chance = random.Random(seed)
    events = write(tmp_path, chance, 0.05 if seed % 2 == 0 else 0.0)
    lines = sum(path.read_text().count("LG") for path in tmp_path.iterdir())
    expected = Counter((one["header"]["channel"], one["header"]["level"]) for one in events)
    values = [one["payload"]["value"] for one in events if one["payload"].get("metric") == "wait"]
    assert lines > len(events) or seed % 2

    ways = {
        "files": rollups.from_files(spark, [str(tmp_path)]),
        "frame": spark.read.format("balog").load(str(tmp_path)),
    }
    for name, asked in ways.items():
        counted = {(row.channel, row.level): row.events for row in functions.channels(asked).collect()}
        assert counted == expected, name
        wait = [row for row in functions.metrics(asked).collect() if row.metric == "wait"]
        assert (sum(row["count"] for row in wait), sum(row["sum"] for row in wait)) == (len(values), sum(values)), name
        assert sum(row.events for row in functions.failures(asked).collect()) == expected.total() - sum(
            number for (_, level), number in expected.items() if level == "INFO"
        )
    for question in (parse_query(), parse_query(where="level IS NOT NULL")):
        report = make_report(spark, [str(tmp_path)], question)
        assert (report.events, report.duplicates) == (len(events), lines - len(events))
        assert report.quarantined == 7
