"""Files in every form, cut off and damaged wherever chance will have it."""

import gzip
import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from balog.analytics.reading.blocks import Block
from balog.analytics.reading.forms.converter import FormConverter, Origin
from balog.analytics.reading.forms.line_converters import OldConverter, SingerConverter, StderrConverter
from balog.analytics.reading.forms.sqs import SqsConverter
from balog.analytics.reading.remote import StoragePool

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def event(number: int) -> bytes:
    header = {"id": f"LG{number:022}", "channel": "c", "timestamp": f"2026-11-20T07:46:{number:02}Z", "level": "INFO"}
    return json.dumps({"schema": "0.1.0", "header": header, "payload": {"n": number}}).encode()


def printed(numbers: range) -> bytes:
    return json.dumps({"Messages": [{"Body": event(number).decode()} for number in numbers]}, indent=4).encode() + b"\n"


NUMBERS = range(20)
TEXTS = {
    "events": b"".join(event(number) + b"\n" for number in NUMBERS),
    "sqs": printed(NUMBERS[:10]) + printed(NUMBERS[10:]),
    "old": b"".join(b'15778800%02d\tc\t{"n":%d}\n' % (number, number) for number in NUMBERS),
    "singer": b"".join(b'{"type":"LOG","level":"INFO","value":%b}\n' % event(number) for number in NUMBERS),
    "stderr": b"".join(b"INFO %d\n  more\n" % number for number in NUMBERS),
}


def numbers_in(rows: list[dict[str, Any]]) -> list[int]:
    payloads = [json.loads(row["payload"]) for row in rows if row["quarantine"] is None]
    return [payload["n"] if "n" in payload else payload["message"] for payload in payloads]


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("form", TEXTS)
def test_a_whole_file_gives_all_its_events_and_nothing_bad(
    form: str, packing: str, tmp_path: Path, read_rows: Any
) -> None:
    (tmp_path / "x").write_bytes(PACKINGS[packing](TEXTS[form]))
    found = numbers_in(read_rows(tmp_path / "x"))
    assert found == ([f"{number}\n  more" for number in NUMBERS] if form == "stderr" else list(NUMBERS))


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("form", TEXTS)
def test_a_mark_before_the_text_is_no_part_of_it(form: str, packing: str, tmp_path: Path, read_rows: Any) -> None:
    (tmp_path / "a").write_bytes(PACKINGS[packing](BOM_UTF8 + TEXTS[form]))
    for rows in (read_rows(tmp_path / "a", form=form), read_rows(tmp_path / "a")):
        assert [row for row in rows if row["quarantine"]] == []
        assert len(rows) == len(NUMBERS)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(form=st.sampled_from(list(TEXTS)), packing=st.sampled_from(list(PACKINGS)), share=st.floats(0, 1))
@example(form="sqs", packing="", share=0.251953125)
def test_of_a_file_that_was_cut_off_comes_its_beginning(
    form: str, packing: str, share: float, tmp_path: Path, read_rows: Any
) -> None:
    packed = PACKINGS[packing](TEXTS[form])
    cut = packed[: int(len(packed) * share)]
    (tmp_path / "x").write_bytes(cut)
    rows = read_rows(tmp_path / "x", form=form)
    found = numbers_in(rows)
    if form == "stderr":
        assert found[:-1] == [f"{number}\n  more" for number in NUMBERS[: max(0, len(found) - 1)]]
    else:
        assert found == list(NUMBERS[: len(found)])
    bad = [row["quarantine"] for row in rows if row["quarantine"]]
    assert len(bad) <= 1
    if packing and 4 <= len(cut) < len(packed):
        assert re.search("damaged|is cut off", bad[0]["reason"])
    if not packing:
        whole = cut.count(b"\n") if form != "sqs" else cut.count(b"        }")
        assert len(found) >= whole - 1 if form != "stderr" else len(found) * 2 >= whole
        assert all(bad_["offset"] <= len(cut) for bad_ in bad)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from(list(TEXTS)),
    asked=st.sampled_from(["auto", *TEXTS]),
    storages=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_whatever_bytes_change_the_reader_goes_on_and_says_where(
    form: str, asked: str, storages: list[tuple[float, int]], tmp_path: Path, read_rows: Any
) -> None:
    data = bytearray(TEXTS[form])
    for share, byte in storages:
        data[int(len(data) * share)] = byte
    (tmp_path / "x").write_bytes(data)
    rows = read_rows(tmp_path / "x", form=asked)
    for row in rows:
        if bad := row["quarantine"]:
            assert 0 <= bad["offset"] <= len(data)
            assert bad["reason"]
    if form == asked and form in ("events", "old", "singer"):
        assert len(rows) >= len(NUMBERS) - len(storages)


@pytest.mark.parametrize(
    "line",
    [b"1577880000\tc\t{}", b'{"type":"LOG","value":{"message":"a"}}', b"INFO same"],
    ids=["old", "singer", "stderr"],
)
def test_ids_follow_from_the_file_and_the_place_in_it(line: bytes, write: Any, read_rows: Any) -> None:
    ids = [row["id"] for row in read_rows(write("one/a.log", line, line, line))]
    assert len(set(ids)) == 3
    assert [row["id"] for row in read_rows(write("two/a.log.gz", line, line, line))] == ids
    assert not {row["id"] for row in read_rows(write("two/b.log", line, line, line))} & set(ids)


@pytest.mark.parametrize(
    ("converter", "text"),
    [
        (StderrConverter, b"a\n"),
        (OldConverter, b"1\tc\t{}\n"),
        (SqsConverter, b'{"Body":""}\n'),
        (SingerConverter, b'{"type":"LOG","value":1}\n'),
        (SingerConverter, b"x\n"),
    ],
)
def test_short_lines_are_handed_on_before_they_take_much_memory(converter: type[FormConverter], text: bytes) -> None:
    data = memoryview(text * (300_000 // len(text)))
    made = converter(Origin("date=2026-11-20/x.log", StoragePool()))
    sizes = [len(lines.events) + len(lines.bad) for lines in made.feed(Block(0, data))]
    assert sum(sizes) in (300_000 // len(text), 300_000 // len(text) - 1)
    assert max(sizes) < 100_000
