from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

from balog.analytics.reading import scan as scanning
from balog.analytics.reading.scan import scan
from balog.analytics.reading.tasks import Slice
from balog.analytics.rollups.worker import RollupQuery
from balog.event import event as events

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def written(level: str = "INFO", channel: str = "tap_x.log", **payload: Any) -> bytes:
    payload = {"cls_type": "log", "message": "done"} | payload
    return events.encode(events.Event.new(channel, payload, level=level, context={"run_id": "r1"}))


def rolled(path: Path) -> tuple[list[str], int]:
    found = [row for batch in scan([Slice(str(path))], RollupQuery()) for row in batch.to_pylist()]
    good = [row for row in found if not row["quarantine"]]
    return sorted(map(repr, good)), len(found) - len(good)


LINES = st.builds(written, st.sampled_from(LEVELS), st.sampled_from(["a", "b.c"]), value=st.integers())
EDITS = st.tuples(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([
    b"", b"0", b"9", b'"', b"{", b"}", b",", b"[", b"]", b"\\", b" ", b"\t", b"\xff", b"NaN", b"null", b"-", b":",
    b'"payload":{},', b'"header":{},', b'"schema":"0.1.0",', b'"id":"LG0",', b'"level":5,', b'"composition":1,',
    b'"context":null,', b'"timestamp":"x",', b"Infinity", b"\r", b"\x00", b"\xc3",
]))  # fmt: skip


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(LINES, st.lists(EDITS, max_size=2)), min_size=1, max_size=3))
def test_edited_lines_count_alike_as_a_block_and_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[tuple[bytes, list[tuple[int, int, bytes]]]]
) -> None:
    lines = []
    for line, edits in made:
        for place, length, text in edits:
            place %= len(line)
            line = line[:place] + text + line[place + length :]
        lines.append(line)
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    by_block = rolled(tmp_path / "a.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(scanning, "count_events", lambda data: None)
        assert rolled(tmp_path / "a.jsonl") == by_block


@pytest.mark.parametrize("payload", [b"5", b"null", b"[]", b'"x"', b"", b'{"value":NaN}', b'{"value":[1,]}'])
def test_an_event_without_a_payload_in_json_is_quarantined(tmp_path: Path, payload: bytes) -> None:
    line = written()
    at = line.index(b',"payload"')
    bad = line[:at] + (b',"payload":' + payload if payload else b"") + b"}"
    (tmp_path / "a.jsonl").write_bytes(line + b"\n" + bad + b"\n")
    assert rolled(tmp_path / "a.jsonl")[1] == 1
