import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

from pyspark.sql import types as t

from balog import event as events
from balog.analytics.reading import scan as scanning
from balog.analytics.reading.files import Slice
from balog.analytics.reading.projection import project
from balog.analytics.reading.scan import EventQuery, scan
from balog.analytics.reading.vouching import canonical_events
from balog.analytics.rollups.worker import RollupQuery

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def written(level: str = "INFO", channel: str = "tap_x.log", **payload: Any) -> bytes:
    payload = {"cls_type": "log", "message": "done"} | payload
    return events.encode(events.Event.new(channel, payload, level=level, context={"run_id": "r1"}))


def vouched(*lines: bytes) -> int | None:
    return canonical_events(memoryview(b"".join(line + b"\n" for line in lines)))


def test_what_balog_writes_is_known_by_its_first_bytes() -> None:
    lines = [written(level, channel) for level in LEVELS for channel in ("a", "tap_x.log", "café", "x" * 40)]
    assert vouched(*lines) == len(lines)
    assert vouched(lines[0].replace(b'"composition":false', b'"composition":true'), *lines) == len(lines) + 1


def test_many_lines_and_long_ones_are_known_too() -> None:
    lines = [written(number=number, text="x" * (number % 2000)) for number in range(3000)]
    assert sum(map(len, lines)) > 2 << 20
    assert vouched(*lines) == 3000


@pytest.mark.parametrize(
    "change",
    [
        lambda line: b"",
        lambda line: b" " + line,
        lambda line: line.replace(b'"1.0.0"', b'"1.0.1"'),
        lambda line: line.replace(b'"LG', b'"XG'),
        lambda line: line.replace(b'","channel"', b'_","channel"'),
        lambda line: line.replace(b"tap_x.log", b""),
        lambda line: line.replace(b"tap_x.log", b"x" * 70),
        lambda line: line.replace(b"tap_x.log", b"tap\\u002flog"),
        lambda line: line.replace(b"INFO", b"LOUD"),
        lambda line: line.replace(b"INFO", b"ERRORS"),
        lambda line: line.replace(b"false", b'"false"'),
        lambda line: line.replace(b'"context":{', b'"context":[').replace(b"}},", b"]},"),
        lambda line: line.replace(b"Z", b"+00:00"),
        lambda line: line.replace(b"T", b" "),
        lambda line: line[: line.index(b"timestamp") + 22] + b"T24" + line[line.index(b"timestamp") + 25 :],
        lambda line: line[: line.index(b"timestamp") + 12] + b"0" + line[line.index(b"timestamp") + 13 :],
        lambda line: line[: len(line) - 1] + b',"deep":' + b"[" * 2000 + b"]" * 2000 + b"}",
        lambda line: line[: len(line) - 1] + b',"long":"' + b"x" * (1 << 20) + b'"}',
    ],
)
def test_any_other_line_wants_a_closer_look(change: Callable[[bytes], bytes]) -> None:
    line = written()
    assert change(line) != line
    for lines in ([change(line)], [change(line)] + [line] * 9, [line] * 9 + [change(line)]):
        assert vouched(*lines) is None


@pytest.mark.parametrize("length", [0, 1, 70, 150])
def test_lines_too_short_for_an_event_are_none(length: int) -> None:
    assert vouched(written()[:length]) is None
    assert vouched(written(), written()[:length]) is None


def rolled(path: Path) -> tuple[list[str], int]:
    found = [row for batch in scan([Slice(str(path))], RollupQuery()) for row in batch.to_pylist()]
    good = [row for row in found if not row["quarantine"]]
    return sorted(map(repr, good)), len(found) - len(good)


LINES = st.builds(written, st.sampled_from(LEVELS), st.sampled_from(["a", "b.c"]), value=st.integers())
EDITS = st.tuples(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([
    b"", b"0", b"9", b'"', b"{", b"}", b",", b"[", b"]", b"\\", b" ", b"\t", b"\xff", b"NaN", b"null", b"-", b":",
    b'"payload":{},', b'"header":{},', b'"schema":"1.0.0",', b'"id":"LG0",', b'"level":5,', b'"composition":1,',
    b'"context":null,', b'"timestamp":"x",', b"Infinity", b"\r", b"\x00", b"\xc3",
]))  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(LINES, st.lists(EDITS, max_size=2)), min_size=1, max_size=3))
def test_edited_lines_count_alike_whoever_vouches_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[tuple[bytes, list[tuple[int, int, bytes]]]]
) -> None:
    lines = []
    for line, edits in made:
        for place, length, text in edits:
            place %= len(line)
            line = line[:place] + text + line[place + length :]
        lines.append(line)
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    quick = rolled(tmp_path / "a.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(scanning, "canonical_events", lambda data: None)
        by_struct = rolled(tmp_path / "a.jsonl")
        patch.setattr(scanning, "count_events", lambda data: None)
        by_line = rolled(tmp_path / "a.jsonl")
    assert quick == by_struct == by_line


@pytest.mark.parametrize("payload", [b"5", b"null", b"[]", b'"x"', b""])
def test_an_event_without_a_payload_is_quarantined_though_it_begins_well(tmp_path: Path, payload: bytes) -> None:
    line = written()
    at = line.index(b',"payload"')
    bad = line[:at] + (b',"payload":' + payload if payload else b"") + b"}"
    assert vouched(line, bad) == 2
    (tmp_path / "a.jsonl").write_bytes(line + b"\n" + bad + b"\n")
    assert rolled(tmp_path / "a.jsonl")[1] == 1


def test_nan_in_a_payload_is_null_wherever_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(written(value=0).replace(b'"value":0', b'"value":NaN') + b"\n")
    assert rolled(path)[1] == 0
    query = EventQuery(project(t.StructType([t.StructField("payload_json", t.StringType())])))
    (row,) = [row for batch in scan([Slice(str(path))], query) for row in batch.to_pylist()]
    assert json.loads(row["payload_json"])["value"] is None
