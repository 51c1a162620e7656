import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.event import MAX_EVENT_BYTES, decode
from balog.singer.messages import write_log
from tests.analytics.reading.payloads import PAYLOADS

DATA = Path(__file__).parents[2] / "data"
OTHERS = [
    b'{"type":"SCHEMA","stream":"s","schema":{},"key_properties":[]}',
    b'{"type":"RECORD","stream":"s","record":{"type":"LOG","value":{"message":"not mine"}}}',
    b'{"type":"STATE","value":{"header":1}}',
    b'{"type":"ACTIVATE_VERSION","stream":"s","version":1}',
    b'{"type":"state","value":{}}',
    b'{"type":"SOMETHING_LATER"}',
]


def log(value: Any, level: str = "INFO") -> bytes:
    return json.dumps({"type": "LOG", "level": level, "value": value}).encode()


def gist(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["channel"], row["level"], row["cls_type"], json.loads(row["payload"])


@pytest.mark.parametrize("name", ["singer-python.singer", "singer-sdk.singer"])
def test_what_real_taps_wrote_has_no_events_and_nothing_bad(name: str, read_rows: Any) -> None:
    assert read_rows(DATA / name) == []


def test_a_log_whose_value_is_an_event_is_that_event(make: Any, write: Any, read_rows: Any) -> None:
    events = [make(), make(schema="0.0.1", level=...), make({"tags": {"type": "RECORD"}})]
    found = read_rows(write("tap-x.singer", *OTHERS, *map(log, events), *OTHERS))
    assert found == read_rows(write("plain.jsonl", *events))


def test_free_json_is_wrapped_as_a_broker_does_it(write: Any, read_rows: Any) -> None:
    point = {"type": "counter", "metric": "record_count", "value": 3, "tags": {"stream": "users"}}
    found = read_rows(
        write(
            "tap-x.singer",
            OTHERS[0],
            log({"message": "hello", "a": 1}, "WARNING"),
            log({"metric": point}),
            log({"free": [1]}),
            log("text", "error"),
            b'{"type": "LOG", "type": "DEBUG", "value": {"message": "doubled"}}',
        )
    )
    logs = {"cls_type": "log", "version": "1.0.0"}
    assert [gist(row) for row in found] == [
        ("tap-x.log", "WARNING", "log", {**logs, "message": "hello", "severity": "WARNING", "fields": {"a": 1}}),
        ("tap-x.metric", "INFO", "metric", {"cls_type": "metric", "version": "1.0.0", **point}),
        ("tap-x.log", "INFO", None, {"free": [1]}),
        ("tap-x.log", "ERROR", "log", {**logs, "message": "text", "severity": "ERROR"}),
        ("tap-x.log", "DEBUG", "log", {**logs, "message": "doubled", "severity": "DEBUG"}),
    ]
    assert {dict(row["context"])["application"] for row in found} == {"tap-x"}


def test_what_looks_like_an_event_and_is_none_is_kept_with_the_reason(make: Any, write: Any, read_rows: Any) -> None:
    (row,) = read_rows(write("tap-x.singer", log(make(id="bad id"))))
    assert "looks like an event and is not one" in json.loads(row["payload"])["message"]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ({"message": "a", "timestamp": "2026-11-20T07:46:12.5Z"}, "2026-11-20T07:46:12.500000+00:00"),
        ({"message": "a", "time": "2026-11-20 07:46:12"}, "2026-11-20T07:46:12+00:00"),
        ({"message": "a", "ts": 1577880000.25}, "2020-01-01T12:00:00.250000+00:00"),
        ({"message": "a", "ts": True, "time": "soon"}, "2026-11-19T00:00:00+00:00"),
        ({"message": "a"}, "2026-11-19T00:00:00+00:00"),
    ],
)
def test_the_time_is_the_value_s_own_else_the_folder_s_day(value: Any, meant: str, write: Any, read_rows: Any) -> None:
    path = write("date=2026-11-19/hour=3/tap-x.singer", log(value))
    (row,) = read_rows(path)
    assert row["timestamp"].isoformat() == meant


def test_without_a_day_the_time_is_the_file_s(write: Any, read_rows: Any) -> None:
    path = write("tap-x.singer", log({"message": "a"}))
    os.utime(path, (0, 1577880000))
    assert read_rows(path)[0]["timestamp"].isoformat() == "2020-01-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Starting up ...", "not JSON"),
        (b'{"type":"LOG","level":"INFO","value":{"message":', "not JSON"),
        (b'{"stream":"s"}', "$.type: no Singer message"),
        (b'{"type":7}', "$.type: no Singer message"),
        (b"[]", "$.type: no Singer message"),
        (b'{"type":"RECORD","stream":"\xff', "not JSON"),
    ],
)
def test_what_is_no_message_is_put_aside(line: bytes, reason: str, write: Any, read_rows: Any) -> None:
    rows = read_rows(write("a.singer", log("a"), line, log("b")), form="singer")
    assert len(rows) == 3
    (bad,) = [row["quarantine"] for row in rows if row["quarantine"]]
    assert reason in bad["reason"]
    assert (bad["offset"], bad["raw"]) == (len(log("a")) + 1, line.decode(errors="replace"))


def test_a_record_that_is_too_long_is_passed_over_and_a_log_is_not(tmp_path: Path, read_rows: Any) -> None:
    long = b"x" * (MAX_EVENT_BYTES + 5_000_000)
    path = tmp_path / "a.singer"
    path.write_bytes(b'{"type":"RECORD","record":"' + long + b'"}\n{"type":"LOG","value":"' + long + b'"}\n')
    (row,) = read_rows(path, form="singer")
    assert row["quarantine"]["reason"] == "longer than 16 MiB"


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PAYLOADS | st.sampled_from(OTHERS), min_size=1, max_size=6))
def test_events_come_out_as_they_went_in(make: Any, write: Any, read_rows: Any, parts: list[Any]) -> None:
    events = [make(part) for part in parts if isinstance(part, dict)]
    made = iter(events)
    lines = [write_log(decode(json.dumps(next(made)))).rstrip() if isinstance(part, dict) else part for part in parts]
    assert read_rows(write("a.singer", *lines), form="singer") == read_rows(write("b.jsonl", *events))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=20) | st.binary(max_size=20).map(lambda data: b'{"type":"LOG","value":' + data)))
def test_garbage_never_stops_the_reader(write: Any, read_rows: Any, lines: list[bytes]) -> None:
    found = read_rows(write("a.singer", log({"message": "a"}), *lines, log({"message": "b"})), form="singer")
    messages = [json.loads(row["payload"]).get("message") for row in found if row["quarantine"] is None]
    assert (messages[0], messages[-1]) == ("a", "b")
