import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from balog.common.errors import EventError
from balog.event import Event, Header, decode, encode
from balog.topics.archives import derive_id, read_time

CHANNELS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
TIMES = st.datetimes().map(lambda when: when.isoformat() + "Z")
LINE = st.tuples(TIMES, CHANNELS, st.dictionaries(st.text("abcé"), st.integers(-9, 9) | st.text('xy\t\\"')))


def read_event(line: bytes, offset: int = 0) -> Event:
    """Read a line one by one: the slow way, which the reader of files must agree with."""
    if line[:1] == b"{" or line.count(b"\t") < 2:
        return decode(line)
    when, channel, payload = line.split(b"\t", 2)
    try:
        json.loads(payload)
        identity, moment = derive_id("a.log", offset, line), read_time(when.decode("ascii"))
        header = Header(id=identity, channel=channel.decode(), timestamp=moment)
        return decode(encode(Event(schema="0.0.1", header=header, stored_payload=Raw(payload))))
    except ValueError as error:
        raise EventError(str(error)) from None


def test_a_line_is_an_event_of_the_first_facility(write: Any, read_rows: Any) -> None:
    path = write(
        "a.log", b'2020-01-01T12:00:00Z\ttap.users.done\t{"cls_type":"metrics","values":[{"name":"n","value":"7"}]}'
    )
    (row,) = read_rows(path)
    assert (row["schema"], row["channel"], row["level"], row["cls_type"]) == (
        "0.0.1",
        "tap.users.done",
        None,
        "metrics",
    )
    assert row["timestamp"].isoformat() == "2020-01-01T12:00:00+00:00"
    assert json.loads(row["payload"])["values"] == [{"name": "n", "value": "7"}]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1577880000", "2020-01-01T12:00:00+00:00"),
        ("1577880000.25", "2020-01-01T12:00:00.250000+00:00"),
        ("2020-01-01 12:00:00", "2020-01-01T12:00:00+00:00"),
        ("2020-01-01", "2020-01-01T00:00:00+00:00"),
        ("2020-01-01T12:00:00+02:00", "2020-01-01T10:00:00+00:00"),
    ],
)
def test_times_that_name_no_zone_are_in_utc(text: str, meant: str, write: Any, read_rows: Any) -> None:
    (row,) = read_rows(write("a.log", f"{text}\tc\t{{}}".encode()), form="old")
    assert row["timestamp"].isoformat() == meant


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINE, min_size=1, max_size=6))
def test_lines_come_out_as_the_replay_of_an_archive_reads_them(write: Any, read_rows: Any, lines: list[Any]) -> None:
    path = write("a.log", *(f"{when}\t{channel}\t{json.dumps(payload)}".encode() for when, channel, payload in lines))
    events = [read_event(line[0], line.start()) for line in re.finditer(rb"[^\n]+", path.read_bytes())]
    found = read_rows(path, form="old")
    assert [(row["id"], row["channel"], row["timestamp"], json.loads(row["payload"])) for row in found] == [
        (event.header.id, event.header.channel, event.header.timestamp, event.payload) for event in events
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.binary(max_size=30).map(lambda line: line.replace(b"\n", b""))
        | st.tuples(TIMES.map(str.encode) | st.binary(max_size=9), st.binary(max_size=9), st.binary(max_size=9)).map(
            lambda parts: b"\t".join(parts).replace(b"\n", b"")
        ),
        max_size=5,
    )
)
def test_garbage_is_put_aside_with_its_place(write: Any, read_rows: Any, lines: list[bytes]) -> None:
    path = write("a.log", b'2020-01-01\tc\t{"a":1}', *lines)
    found = read_rows(path, form="old")
    data = path.read_bytes()
    for row in found:
        if bad := row["quarantine"]:
            line = data[bad["offset"] :].partition(b"\n")[0]
            assert line.decode(errors="replace") == bad["raw"]
            with pytest.raises(EventError):
                read_event(line)
    assert len(found) == 1 + sum(bool(line.strip()) for line in lines)


def test_a_payload_cannot_write_over_the_header(write: Any, read_rows: Any) -> None:
    forged = (
        b'1577880000\tc\t{},"header":{"id":"LGx","channel":"forged","timestamp":"2020-01-01T00:00:00Z"},"payload":{}'
    )
    (row,) = read_rows(write("a.log", forged), form="old")
    assert "$.payload" in row["quarantine"]["reason"]


def test_events_of_both_facilities_may_stand_between_old_lines(make: Any, write: Any, read_rows: Any) -> None:
    documents = [make(), make(schema="0.0.1", level=...)]
    found = read_rows(write("a.log", b"1577880000\tc\t{}", *documents))
    assert [row["schema"] for row in found] == ["0.0.1", "0.1.0", "0.0.1"]
    assert [row["id"] for row in found[1:]] == [document["header"]["id"] for document in documents]


def test_a_line_at_which_a_file_is_cut_off_counts_if_it_is_whole(tmp_path: Path, read_rows: Any) -> None:
    import zlib

    text = b'1577880000\tc\t{"a":1}\n1577880001\tc\t{"a":2}'
    for cut, events in ((text, 2), (text[:-1], 1)):
        stream = zlib.compressobj(wbits=31)
        (tmp_path / "a.log.gz").write_bytes(stream.compress(cut) + stream.flush(zlib.Z_SYNC_FLUSH))
        *found, damage = read_rows(tmp_path / "a.log.gz")
        assert len(found) == events
        assert "ends early" in damage["quarantine"]["reason"]
        assert damage["quarantine"]["offset"] == (len(cut) if events == 2 else 21)
