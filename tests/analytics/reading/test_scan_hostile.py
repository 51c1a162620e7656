"""What hostile lines cost those that read them."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

import duckdb

from balog.analytics.reading import scan as scanning
from balog.analytics.reading.parser import Parser, borrow_parser
from balog.analytics.reading.scan import EventQuery, scan
from balog.analytics.reading.spark_types import DEFAULT, project_spark
from balog.analytics.reading.tasks import Slice
from balog.analytics.reading.validation import normalize
from balog.analytics.rollups.worker import RollupQuery


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_many_times_out_of_the_calendar_cost_no_question_each(
    make: Any, write: Any, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    asked_for = []
    take = Parser.take
    monkeypatch.setattr(Parser, "take", lambda self, *args, **named: asked_for.append(1) or take(self, *args, **named))
    path = write("a.jsonl", *(make(timestamp=when) for _ in range(100)), make())
    for query in (EventQuery(project_spark(DEFAULT)), RollupQuery()):
        found = [row for batch in scan([Slice(str(path))], query) for row in batch.to_pylist()]
        bad = [row["quarantine"] for row in found if row["quarantine"]]
        assert {row["reason"] for row in bad} == {"$.header.timestamp: not in the years 1 to 9999 in UTC"}
        assert (len(bad), len({row["offset"] for row in bad})) == (100, 100)
        assert len(found) > 100
    assert len(asked_for) < 10


def test_a_large_block_with_a_bad_line_is_looked_at_piece_by_piece(
    make: Any, read_rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    monkeypatch.setattr(scanning, "_CLOSELY", 64 * 1024)
    monkeypatch.setattr(scanning, "normalize", lambda block: looked_at.append(len(block.data)) or normalize(block))
    lines = [json.dumps(make()).encode() + b"\n" for _ in range(1000)]
    lines[700] = b"broken\n"
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    found = read_rows(tmp_path / "a.jsonl")
    (bad,) = [row["quarantine"] for row in found if row["quarantine"]]
    assert (len(found), bad["offset"]) == (1000, sum(map(len, lines[:700])))
    (size,) = looked_at
    assert size < 65 * 1024


@pytest.mark.parametrize("name", ["OutOfMemoryException", "FatalException", "InternalException", "IOException"])
def test_a_parser_that_fails_by_itself_fails_the_task_and_is_not_used_again(
    make: Any, write: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    failed: list[Parser] = []

    def fail(self: Parser, *args: Any) -> Any:
        failed.append(self)
        raise getattr(duckdb, name)("the machine's fault")

    path = write("a.jsonl", make(), b"not an event")
    query = EventQuery(project_spark(DEFAULT))
    with monkeypatch.context() as patch:
        patch.setattr(Parser, "table", fail)
        with pytest.raises(duckdb.Error, match="the machine's fault"):
            list(scan([Slice(str(path))], query))
    assert sum(batch.num_rows for batch in scan([Slice(str(path))], query)) == 2
    with borrow_parser() as parser:
        assert parser not in failed
