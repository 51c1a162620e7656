import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reading.forms import FORMS, can_split, detect, read_form
from balog.analytics.reading.forms.reader import HEAD
from balog.common.errors import ConfigError

DATA = Path(__file__).parents[2] / "data"
EVENT = b'{"schema":"0.1.0","header":{"id":"LG1"},"payload":{}}\n'
MESSAGES = (
    b'{\n    "Messages": [\n        {\n            "MessageId": "1",\n            "Body": "{}"\n        }\n    ]\n}\n'
)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("event-0.0.1.json", "sqs"),
        ("singer-python.singer", "singer"),
        ("singer-sdk.singer", "singer"),
        ("singer-python.stderr.log", "stderr"),
        ("singer-sdk.stderr.log", "stderr"),
        ("singer-sdk.json.stderr.log", "stderr"),
    ],
)
def test_what_real_programs_wrote_is_told_by_its_first_lines(name: str, form: str) -> None:
    assert detect((DATA / name).read_bytes(), "/dumps/x") == form


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (EVENT, "events"),
        (b'{"header":{},"payload":{"type":"RECORD"}}', "events"),
        (b'{"schema":"0.1.0","header":{"id":"' + b"x" * HEAD, "events"),
        (MESSAGES, "sqs"),
        (MESSAGES.replace(b"\n", b"\r\n"), "sqs"),
        (b'{"MessageId":"1","ReceiptHandle":"r","Body":"{}"}\n', "sqs"),
        (b'{"Messages":[{"MessageId":"1","Body":"' + b"x" * HEAD, "sqs"),
        (b'[\n  {\n    "MessageId": "1",\n    "Body": "{}"\n  }\n]', "sqs"),
        (b'{"type":"RECORD","stream":"s","record":{"header":"' + b"x" * HEAD, "singer"),
        (b'{"type": "LOG", "type": "DEBUG", "value": 1}', "singer"),
        (b'{"stream":"s","type":"state","value":{}}', "singer"),
        (b'2020-01-01T12:00:00Z\ttap.done\t{"a":1}\n', "old"),
        (b"1577880000.5\ttap.done\t{}\n", "old"),
        (b"INFO Starting sync\n", "stderr"),
        (b"Traceback (most recent call last):\n", "stderr"),
        (b'{"level":"info","message":"hello","ts":1}\n', "stderr"),
        (b"\n\n  \nINFO Starting sync\n", "stderr"),
    ],
)
def test_a_form_is_told_whatever_the_file_is_called(head: bytes, form: str) -> None:
    assert detect(head, "/dumps/x.jsonl") == form
    assert detect(head, "/dumps/x.log") == form


def test_lines_of_json_loggers_are_stderr_and_other_json_is_not() -> None:
    for name in ("pino", "jsonlogger", "structlog-json", "ecs", "loguru-json"):
        assert detect((DATA / "stderr-corpus" / f"{name}.log").read_bytes(), "/dumps/x.jsonl") == "stderr"
    assert detect(b'{"event":"signup","time":"2026-01-01T00:00:00Z"}\n', "/dumps/x.jsonl") == "events"


def test_the_first_line_that_has_a_form_decides() -> None:
    assert detect(b"what\n{broken\n" + EVENT + b"INFO hello\n", "x.log") == "events"


@pytest.mark.parametrize("head", [b"just words\n", "größer\n".encode(), "ü".encode() * HEAD])
def test_plain_text_is_a_capture_unless_it_is_called_json_lines(head: bytes) -> None:
    assert detect(head, "x.log") == "stderr"
    assert detect(head, "x.jsonl.gz") == "events"


@pytest.mark.parametrize("head", [b"", b"\n", b"\0\1\2", b"\xff\xfe\xfd words words"])
def test_what_is_no_text_goes_to_the_reader_of_events_which_refuses_it(head: bytes) -> None:
    assert detect(head, "x.log") == "events"


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "ignore")))
def test_whatever_the_bytes_there_is_an_answer(head: bytes) -> None:
    assert detect(head, "x") in FORMS


@pytest.mark.parametrize(
    ("form", "head", "can"),
    [
        ("events", EVENT, True),
        ("old", b"1\ta\t{}\n", True),
        ("singer", b'{"type":"STATE"}\n', True),
        ("stderr", b"INFO a\n", False),
        ("sqs", MESSAGES, False),
        ("sqs", b'{"MessageId":"1","Body":"{}"}\n{"Mess', True),
        ("sqs", b'{"MessageId":"1","Body":"' + b"x" * HEAD, True),
    ],
)
def test_only_what_stands_in_one_line_can_be_cut(form: str, head: bytes, can: bool) -> None:
    assert can_split(form, head) == can


class TestSlices:
    def test_every_cut_of_a_file_that_can_be_cut_gives_each_event_once(
        self, make: Any, write: Any, read_rows: Any
    ) -> None:
        events = [make() for _ in range(40)]
        lines = [{"MessageId": str(number), "Body": json.dumps(event)} for number, event in enumerate(events)]
        path = write("a.json", *lines)
        size = path.stat().st_size
        for cut in range(0, size, 97):
            found = [row["id"] for row in read_rows(path, 0, cut) + read_rows(path, cut)]
            assert found == [event["header"]["id"] for event in events]

    def test_a_file_that_cannot_be_cut_belongs_to_its_first_slice(self, write: Any, read_rows: Any) -> None:
        path = write("tap-x.log", b"INFO one", b"ERROR two", b"Traceback (most recent call last):", b"  File", b"E: x")
        whole = read_rows(path)
        assert len(whole) == 2
        for cut in (0, 5, 12, 40):
            assert read_rows(path, 0, cut) + read_rows(path, cut, 50) + read_rows(path, 50) == whole

    def test_of_a_file_that_grows_a_slice_is_what_was_added(self, write: Any, read_rows: Any) -> None:
        path = write("tap-x.log", b"INFO one", b"ERROR two")
        first = read_rows(path, 0, 9, growth=True)
        path.write_bytes(path.read_bytes() + b"INFO three\n")
        second = read_rows(path, 9, 31, growth=True)
        assert [json.loads(row["payload"])["message"] for row in [*first, *second]] == ["one", "two", "three"]
        assert [row["id"] for row in [*first, *second]] == [row["id"] for row in read_rows(path)]


def test_a_form_that_is_given_is_not_looked_for(write: Any, read_rows: Any) -> None:
    path = write("x.jsonl", b"INFO hello")
    assert [row["quarantine"] is None for row in read_rows(path)] == [True]
    (row,) = read_rows(path, form="events")
    assert row["quarantine"]["raw"] == "INFO hello"


def test_what_cannot_be_opened_is_one_row_in_any_form(tmp_path: Path, read_rows: Any) -> None:
    for form in FORMS:
        (row,) = read_rows(tmp_path / "gone.log", form=form)
        assert row["quarantine"]["reason"].startswith("can't be read")


def test_there_must_be_such_a_form() -> None:
    assert read_form({}) == "auto"
    with pytest.raises(ConfigError, match="no form 'xml'; there are auto, events"):
        read_form({"form": "xml"})
