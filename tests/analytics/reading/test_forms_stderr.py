import json
import os
import shutil
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.log_lines import LineAssembler

DATA = Path(__file__).parents[2] / "data"


def gist(row: dict[str, Any]) -> tuple[Any, ...]:
    payload = json.loads(row["payload"])
    if row["cls_type"] == "metric":
        return row["level"], payload["type"], payload["metric"], payload["value"]
    return row["level"], payload["message"]


@pytest.mark.parametrize("name", ["singer-sdk.stderr.log", "singer-sdk.json.stderr.log"])
def test_captures_of_the_sdk(name: str, tmp_path: Path, read_rows: Any) -> None:
    rows = read_rows(shutil.copy(DATA / name, tmp_path / "tap-jsonl.log"))
    assert len(rows) == 11
    assert [row["channel"] for row in rows[1:3]] == ["tap-jsonl", "tap-jsonl.airports"]
    assert gist(rows[10]) == ("INFO", "counter", "record_count", 3376)
    assert {dict(row["context"])["application"] for row in rows} == {"tap-jsonl"}


@pytest.mark.parametrize(
    "name",
    [
        *("singer-python.stderr.log", "singer-sdk.stderr.log", "singer-sdk.json.stderr.log"),
        *(f"stderr-corpus/{path.name}" for path in sorted((DATA / "stderr-corpus").glob("*.log"))),
    ],
)
def test_a_capture_gives_the_events_that_a_sidecar_would_have_made(name: str, read_rows: Any) -> None:
    assembler = LineAssembler(Path(name).name.partition(".")[0])
    events = assembler.feed((DATA / name).read_bytes()) + assembler.close()
    rows = read_rows(DATA / name)
    assert [(row["channel"], row["level"], json.loads(row["payload"])) for row in rows] == [
        (event.header.channel, event.level, event.payload) for event in events
    ]


def test_plain_lines_are_events_of_their_own_and_nothing_is_bad(make: Any, write: Any, read_rows: Any) -> None:
    event = make()
    lines = [
        b"words",
        b"",
        b"\xff\xfe",
        b"{not json",
        b"Traceback (most recent call last):",
        b"  File x",
        b"E: 1",
        event,
    ]
    rows = read_rows(write("tap-x.log", *lines), form="stderr")
    assert [row["quarantine"] for row in rows] == [None] * 5
    assert [gist(row)[1] for row in rows[:4]] == ["words", "\ufffd\ufffd", "{not json", "E: 1"]
    assert rows[4]["id"] == event["header"]["id"]


def test_a_singer_stream_in_the_same_file_is_read_as_one(make: Any, write: Any, read_rows: Any) -> None:
    event = make()
    record = {"type": "RECORD", "stream": "s", "record": {"a": 1}}
    lines = [b"INFO one", record, {"type": "LOG", "level": "INFO", "value": event}, b"ERROR two", {"type": "what"}]
    rows = read_rows(write("tap-x.log", *lines))
    assert [row["level"] for row in rows] == ["INFO", "INFO", "ERROR"]
    assert rows[1]["id"] == event["header"]["id"]
    assert gist(rows[2]) == ("ERROR", 'two\n{"type":"what"}')


class TestTimes:
    def test_a_time_without_a_zone_is_in_utc(self, write: Any, read_rows: Any) -> None:
        path = write("tap-x.log", b"2026-07-20 08:18:50,473 | INFO     | tap-x | hello")
        assert read_rows(path)[0]["timestamp"].isoformat() == "2026-07-20T08:18:50.473000+00:00"

    def test_a_line_without_one_has_the_last_one_before_it_else_the_file_s(self, write: Any, read_rows: Any) -> None:
        path = write("tap-x.log", b"INFO one", b"2026-07-20 08:18:50,473 | INFO     | tap-x | two", b"INFO three")
        os.utime(path, (0, 1577880000))
        assert [row["timestamp"].isoformat()[:19] for row in read_rows(path)] == [
            "2020-01-01T12:00:00",
            "2026-07-20T08:18:50",
            "2026-07-20T08:18:50",
        ]
        path = write("date=2026-07-01/tap-x.log", b"INFO one")
        assert read_rows(path)[0]["timestamp"].isoformat() == "2026-07-01T00:00:00+00:00"


def test_a_line_that_is_too_long_is_cut_and_still_an_event(tmp_path: Path, read_rows: Any) -> None:
    path = tmp_path / "tap-x.log"
    path.write_bytes(b"INFO one\nERROR " + b"x" * (21 << 20) + b"\nINFO two\n")
    first, long, last = read_rows(path, form="stderr")
    assert [gist(row)[1] for row in (first, last)] == ["one", "two"]
    assert gist(long)[0] == "ERROR"
    assert set(gist(long)[1]) == {"x"}


LINES = """\
INFO a
ERROR b
Traceback (most recent call last):
  File x
ValueError: no

plain
2026-11-20 08:18:50,473 | INFO     | l | m
2026-13-40 08:18:50,473 | INFO     | l | m
{"level":"info","message":"m"}
METRIC: {"type":"gauge","metric":"m","value":1e999}
{"level":"info","message":"m","ts":1e300,"n":123456789012345678901234567890}
During handling of the above exception, another exception occurred:
"""
LINE = st.sampled_from(LINES.splitlines()) | st.text(max_size=20)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINE.map(lambda line: line.encode("utf-8", "surrogatepass")) | st.binary(max_size=20), max_size=12))
def test_whatever_the_lines_they_come_out_as_a_sidecar_would_have_them(
    write: Any, read_rows: Any, lines: list[bytes]
) -> None:
    path = write("tap-x.log", b"INFO first", *lines)
    assembler = LineAssembler("tap-x")
    events = assembler.feed(path.read_bytes()) + assembler.close()
    rows = read_rows(path, form="stderr")
    assert [row["quarantine"] for row in rows] == [None] * len(events)
    assert [(row["channel"], row["level"], json.loads(row["payload"])) for row in rows] == [
        (event.header.channel, event.level, event.payload) for event in events
    ]
    assert read_rows(path, form="stderr") == rows


def test_a_record_without_a_time_has_that_of_its_file_on_a_store(read_rows: Any) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/balog-times/tap-x.log", b"INFO one")
    (row,) = read_rows("memory://balog-times/tap-x.log")
    assert row["timestamp"] == memory.info("/balog-times/tap-x.log")["created"]
