"""The tables of payload types, as a worker derives them."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from balog.analytics.reading.spark_types import TEXT_EVENT, struct
from balog.analytics.source import EventSource
from balog.analytics.tables import stage
from balog.analytics.tables.column_conversion import Columns
from balog.analytics.tables.derivation import Derivation, PayloadTable
from balog.analytics.tables.stage import BatchStage, DayFiles
from balog.analytics.tables.table_schema import merge


def test_a_worker_makes_columns_only_for_types_that_it_has_events_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    made = []

    class Counted(Columns):
        def __init__(self, schema: Any, cls_type: str) -> None:
            made.append(cls_type)
            super().__init__(schema, cls_type)

    monkeypatch.setattr("balog.analytics.tables.derivation.Columns", Counted)
    payloads = [{"cls_type": name, "n": 1} for name in ("a", "b", "a")]
    lines = [json.dumps({**make(payload), "payload": payload}) for payload in payloads]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    batch = BatchStage(str(tmp_path / "staged"), "b", datetime.now(timezone.utc))
    reader = EventSource({"paths": json.dumps([str(tmp_path / "a.jsonl")])}).reader(TEXT_EVENT)
    rows = [row for task in reader.partitions() for part in batch.run(reader.read(task)) for row in part.to_pylist()]
    schema = merge(None, struct("n bigint")).schema.json()
    kinds = [PayloadTable(name, name, schema) for name in "abcdefgh"]
    paths = [row["path"] for row in rows if row["table"] == "events"]
    written = [row["table"] for part in Derivation(batch, kinds).run(paths) for row in part.to_pylist()]
    assert sorted(made) == ["a", "b"]
    assert {"a", "b"} < set(written) <= {"a", "b", "-rollup", "-count"}


def test_a_worker_writes_one_file_for_each_day_of_few_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_GROUP_ROWS", 50)
    days = DayFiles(BatchStage(str(tmp_path), "b", datetime.now(timezone.utc)), "t")
    first = datetime(2024, 1, 1, tzinfo=timezone.utc)
    for number in range(10):
        times = [first + timedelta(days=(row * 7) % 20, seconds=number) for row in range(40)]
        numbers = range(number * 40, number * 40 + 40)
        days.add(pa.table({"timestamp": pa.array(times, pa.timestamp("us", "UTC")), "n": list(numbers)}))
    files, seen = days.close(), []
    assert len(files) == 20
    for file in files:
        rows = pq.read_table(file.path, partitioning=None)
        times = rows["timestamp"].to_pylist()
        assert times == sorted(times)
        assert {moment.date() for moment in times} == {file.day}
        assert (file.first, file.last) == (times[0], times[-1])
        seen += rows["n"].to_pylist()
    assert sorted(seen) == list(range(400))
