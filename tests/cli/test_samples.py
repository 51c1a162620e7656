"""Files of samples: lines, arrays, one object; packed or not; what is none comes with its place."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from balog.cli.shared.samples import PayloadSample, read_samples
from balog.common.errors import EventError
from balog.event import MAX_EVENT_BYTES, Event, encode

EVENT = encode(Event.new("a", {"cls_type": "x", "n": 1}))


def read(data: bytes) -> list[PayloadSample]:
    return list(read_samples(io.BytesIO(data)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"])
def test_lines_of_events_and_payloads(pack: Any) -> None:
    found = read(pack(EVENT + b"\n\n" + b'{"n": 2}\n' + EVENT))

    assert [(sample.place, sample.prefix, json.loads(sample.payload)["n"]) for sample in found] == [
        ("line 1", "$.payload", 1),
        ("line 3", "$", 2),
        ("line 4", "$.payload", 1),
    ]


def test_an_array() -> None:
    found = read(b'\n [{"n": 1},\n {"n": 2}, 3]')

    assert [(sample.place, sample.payload) for sample in found[:2]] == [
        ("item 1", b'{"n": 1}'),
        ("item 2", b'{"n": 2}'),
    ]
    assert str(found[2].problem) == "$: expected an object"


def test_one_object_laid_out_for_people() -> None:
    assert [sample.place for sample in read(json.dumps({"a": {"b": 1}}, indent=2).encode())] == [""]


def test_a_line_that_is_none_does_not_stop_the_others() -> None:
    found = read(b'{"n":\n{"n": 2}\nword\n{"n": 3}')

    assert [(sample.place, sample.problem is None) for sample in found] == [
        ("line 1", False),
        ("line 2", True),
        ("line 3", False),
        ("line 4", True),
    ]


def test_an_event_that_is_none_says_where() -> None:
    broken = json.loads(EVENT) | {"schema": "9.0.0"}

    assert read(json.dumps(broken).encode())[0].problem.path == "$.schema"  # type: ignore[union-attr]


def test_a_file_with_nothing_in_it_has_no_samples() -> None:
    assert read(b"") == read(b"\n \n") == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(EVENT)[:40], "a broken archive"),
        (zstandard.compress(EVENT)[:6] + b"junk", "a broken archive"),
        (b'[{"n": 1}', "not JSON"),
        (b"[" * 100_000, "nested too deep"),
    ],
    ids=["gzip", "zstd", "array", "deep"],
)
def test_a_file_that_cannot_be_read_is_one_line(data: bytes, said: str) -> None:
    with pytest.raises(EventError, match=said):
        read(data)


def test_a_line_that_is_too_long_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("balog.topics.archives.MAX_EVENT_BYTES", 100)
    found = read(b'{"n": 1}\n{"n": "' + b"x" * 1000 + b'"}\n{"n": 3}\n')

    assert [sample.place for sample in found] == ["line 1", "line 2", "line 3"]
    assert str(found[1].problem) == f"$: more than {MAX_EVENT_BYTES} bytes"


def test_lines_are_read_as_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b'{"n": 1}\n' * 400_000)

    with open(path, "rb") as file:
        samples = read_samples(file)
        assert next(samples).place == "line 1"
        assert file.tell() < 3_000_000
