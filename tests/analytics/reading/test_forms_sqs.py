import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.analytics.reading.blocks import BadLine, Block
from balog.analytics.reading.forms import sqs
from balog.analytics.reading.forms.sqs import DocumentMessage, DocumentReader
from balog.topics.sqs.packing import encode_body
from tests.analytics.reading.payloads import PAYLOADS


def message(body: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"MessageId": f"m{number}", "ReceiptHandle": "AQEB/+==", "MD5OfBody": "0", "Body": text, **more}


def envelope(body: Any) -> str:
    """What SNS delivers to a queue, from its guide."""
    return json.dumps(
        {
            "Type": "Notification",
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": "arn:aws:sns:eu-west-1:123456789012:events",
            "Message": json.dumps(body),
            "Timestamp": "2026-11-20T07:46:12.123Z",
            "SignatureVersion": "1",
            "Signature": "x",
        }
    )


def printed(messages: list[dict[str, Any]], indent: int | str | None = 4) -> bytes:
    """What ``aws sqs receive-message`` prints."""
    return json.dumps({"Messages": messages}, indent=indent).encode() + b"\n"


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows if row["quarantine"] is None]


def reasons(rows: list[dict[str, Any]]) -> list[str]:
    return [row["quarantine"]["reason"] for row in rows if row["quarantine"] is not None]


@pytest.mark.parametrize("indent", [4, 0, "\t", None])
def test_documents_stand_one_after_another_however_they_are_laid_out(
    indent: Any, make: Any, tmp_path: Any, read_rows: Any
) -> None:
    events = [make() for _ in range(5)]
    data = printed([message(event) for event in events[:3]], indent) + printed([], indent) + b"\n"
    (tmp_path / "a.json").write_bytes(data + printed([message(event) for event in events[3:]], indent))
    rows = read_rows(tmp_path / "a.json")
    assert [row["id"] for row in rows] == [event["header"]["id"] for event in events]


def test_messages_may_stand_line_by_line_and_in_a_bare_list(
    make: Any, write: Any, tmp_path: Any, read_rows: Any
) -> None:
    events = [make(), make()]
    assert ids(read_rows(write("a.jsonl", *map(message, events)))) == [event["header"]["id"] for event in events]
    (tmp_path / "b.json").write_text(json.dumps([*map(message, events)], indent=2) + "\n" + json.dumps(message(make())))
    assert len(ids(read_rows(tmp_path / "b.json"))) == 3


def test_the_list_of_messages_may_come_behind_other_members(make: Any, write: Any, read_rows: Any) -> None:
    about = {"RequestId": "r", "HTTPHeaders": {"x": ["]", "}"]}}
    first = {"ResponseMetadata": about, "Messages": [message(make())]}
    last = {"Messages": [message(make())], "ResponseMetadata": about, "More": 1}
    path = write("a.json", first, last, {"ResponseMetadata": about}, {})
    for form in ("auto", "sqs"):
        assert len(ids(read_rows(path, form=form))) == (2 if form == "sqs" else len(read_rows(path)))


def test_an_event_is_found_in_what_sns_wrapped_it_in(make: Any, write: Any, read_rows: Any) -> None:
    event = make()
    assert ids(read_rows(write("a.jsonl", message(envelope(event))))) == [event["header"]["id"]]


def test_a_body_in_base64_is_known_by_its_attribute(make: Any, write: Any, read_rows: Any) -> None:
    event = make({"text": "\x01"})
    body = json.dumps(event, ensure_ascii=False).encode() + b"\r\n"
    text, attributes = encode_body(body)
    assert attributes
    assert ids(read_rows(write("a.jsonl", message(text, MessageAttributes=attributes)))) == [event["header"]["id"]]


def test_a_body_that_is_in_s3_is_refused_by_that_name(write: Any, read_rows: Any) -> None:
    attributes = {"ExtendedPayloadSize": {"DataType": "Number", "StringValue": "300000"}}
    (reason,) = reasons(read_rows(write("a.jsonl", message('["x",{}]', MessageAttributes=attributes))))
    assert "its body is in S3" in reason


def test_bodies_of_both_facilities_and_laid_out_for_people_are_events(make: Any, write: Any, read_rows: Any) -> None:
    events = [make(), make(schema="0.0.1", level=...)]
    bodies = [json.dumps(event, indent=2) for event in events]
    rows = read_rows(write("a.jsonl", *map(message, bodies)))
    assert [row["schema"] for row in rows] == ["0.1.0", "0.0.1"]


def test_an_event_that_is_a_document_of_its_own_is_taken(make: Any, tmp_path: Any, read_rows: Any) -> None:
    events = [make({"a": [1, {"b": 2}]}), make()]
    (tmp_path / "a.json").write_text("\n".join(json.dumps(event, indent=4) for event in events))
    assert ids(read_rows(tmp_path / "a.json")) == [event["header"]["id"] for event in events]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("hello", "not JSON"),
        ('{"a":1}\n{"b":2}', "missing required field `schema`"),
        ({"schema": "0.1.0"}, "missing required field `header`"),
        ("", "not JSON"),
    ],
)
def test_a_body_that_is_no_event_is_put_aside_and_costs_its_neighbours_nothing(
    body: Any, reason: str, make: Any, tmp_path: Any, read_rows: Any
) -> None:
    (tmp_path / "a.json").write_bytes(printed([message(make()), message(body), message(make())]))
    rows = read_rows(tmp_path / "a.json")
    assert len(ids(rows)) == 2
    (bad,) = [row["quarantine"] for row in rows if row["quarantine"]]
    assert reason in bad["reason"]
    assert bad["raw"] == (body if isinstance(body, str) else json.dumps(body))
    assert (tmp_path / "a.json").read_bytes()[bad["offset"] :].startswith(b'{\n            "MessageId"')


def test_a_broken_message_costs_itself_alone(make: Any, tmp_path: Any, read_rows: Any) -> None:
    good = [make() for _ in range(4)]
    whole = printed([message(event, number) for number, event in enumerate(good)])
    broken = whole.replace(b'"MessageId": "m1"', b'"MessageId" "m1"')
    (tmp_path / "a.json").write_bytes(broken + printed([message(make())]))
    rows = read_rows(tmp_path / "a.json")
    assert len(ids(rows)) == 4
    (bad,) = [row["quarantine"] for row in rows if row["quarantine"]]
    assert bad["reason"] == "not JSON: expected ':'"
    assert bad["raw"].startswith('{\n            "MessageId" "m1"')
    assert "m2" not in bad["raw"]


@pytest.mark.parametrize("cut", [-2, -7, -30, 500, 40, 20])
def test_a_document_that_was_cut_off_costs_what_is_behind_the_cut_alone(
    cut: int, make: Any, tmp_path: Any, read_rows: Any
) -> None:
    whole = printed([message(make()) for _ in range(3)])[:cut]
    next_ = [make(), make()]
    (tmp_path / "a.json").write_bytes(whole + b"\n" + printed([message(event) for event in next_]))
    rows = read_rows(tmp_path / "a.json")
    assert ids(rows)[-2:] == [event["header"]["id"] for event in next_]
    assert len(ids(rows)) == 2 + whole.count(b"        },\n") + (cut in (-2, -7))
    assert len(reasons(rows)) == 1
    (tmp_path / "b.json").write_bytes(whole)
    rows = read_rows(tmp_path / "b.json", form="sqs")
    assert len(reasons(rows)) == 1


def test_lines_between_documents_that_are_none_are_put_aside(make: Any, tmp_path: Any, read_rows: Any) -> None:
    some = printed([message(make())])
    (tmp_path / "a.json").write_bytes(some + b"Unable to locate credentials\n" + some + b'{"Foo": 1}\n')
    rows = read_rows(tmp_path / "a.json")
    assert len(ids(rows)) == 2
    assert reasons(rows) == ["not JSON: expected a document", "no SQS message: it has neither Body nor Messages"]


def test_what_never_ends_is_given_up_at_16_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqs, "MAX_EVENT_BYTES", 1000)
    reader = DocumentReader()
    found = [*reader.feed(b'{"Messages": [\n  {"Body": [\n', 0)]
    for number in range(40):
        found += reader.feed(b'"' + b"x" * 97 + b'",\n', 30 + number * 100)
    found += reader.feed(b'  {"Body": "a"}]}\n{"Body": "b"}\n', 4030)
    found += reader.close()
    assert [part for part in found if isinstance(part, DocumentMessage)] == [
        DocumentMessage(4032, b'{"Body": "a"}'),
        DocumentMessage(4048, b'{"Body": "b"}\n'),
    ]
    (bad,) = [part for part in found if isinstance(part, BadLine)]
    assert (bad.offset, bad.reason) == (17, "longer than 16 MiB")


PARTS = st.sampled_from(
    [
        b'{"Body":"x"}',
        b'{"Messages": [',
        b"{\n",
        b"]",
        b"}",
        b",",
        b"\n",
        b'"',
        b'  {"Body": "\\n"}',
        b"[",
        b"1",
        b"\\",
        b":",
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS | st.binary(max_size=5), max_size=30).map(b"".join), st.randoms(use_true_random=False))
def test_whatever_the_bytes_and_the_blocks_the_same_is_found(data: bytes, chance: random.Random) -> None:
    def read(pieces: list[bytes]) -> list[Any]:
        reader, offset, found = DocumentReader(), 0, []
        for piece in pieces:
            found += reader.feed(piece, offset)
            offset += len(piece)
        return [*found, *reader.close()]

    lines = data.splitlines(keepends=True) if b"\r" not in data else [data]
    joined = [b""]
    for line in lines:
        joined.append(line) if chance.random() < 0.5 else joined.__setitem__(-1, joined[-1] + line)
    whole, parted = read([data]), read(joined)
    assert [part for part in whole if isinstance(part, DocumentMessage)] == [
        part for part in parted if isinstance(part, DocumentMessage)
    ]
    for part in whole:
        if isinstance(part, DocumentMessage):
            assert data[part.offset : part.offset + len(part.text)] == part.text
            json.loads(part.text.decode("latin-1"))
        else:
            assert data[part.offset :].startswith(part.raw)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_events_come_out_as_they_went_in(data: Any, make: Any, write: Any, tmp_path: Any, read_rows: Any) -> None:
    events = [make(payload) for payload in data.draw(st.lists(PAYLOADS, min_size=1, max_size=5))]
    indent = data.draw(st.sampled_from([4, None]))
    wrapped = [message(envelope(event) if data.draw(st.booleans()) else event) for event in events]
    (tmp_path / "a.json").write_bytes(printed(wrapped[:2], indent) + printed(wrapped[2:], indent))
    expected = [(row["id"], row["payload"]) for row in read_rows(write("plain.jsonl", *events))]
    assert [(row["id"], row["payload"]) for row in read_rows(tmp_path / "a.json")] == expected


def test_blocks_may_end_anywhere_between_lines(make: Any, tmp_path: Any, read_rows: Any) -> None:
    """A file of more than one block's worth of pieces: 128 KiB of it are converted at a time."""
    events = [make({"text": "x" * 2000}) for _ in range(300)]
    (tmp_path / "a.json").write_bytes(
        b"".join(printed([message(e) for e in events[n : n + 10]]) for n in range(0, 300, 10))
    )
    assert ids(read_rows(tmp_path / "a.json")) == [event["header"]["id"] for event in events]


def test_a_block_is_a_view_that_may_change_afterwards() -> None:
    from balog.analytics.reading.forms.converter import Origin
    from balog.analytics.reading.forms.sqs import SqsConverter
    from balog.analytics.reading.remote import StoragePool

    converter = SqsConverter(Origin("a", StoragePool()))
    buffer = bytearray(b'{"Messages": [\n {"Body": "1"},\n {"Body":\n')
    assert [line for lines in converter.feed(Block(0, memoryview(buffer))) for line in lines.events] == [b"1"]
    buffer[:] = b'"2"}]}\n'.ljust(len(buffer))
    found = [*converter.feed(Block(len(buffer), memoryview(buffer))), *converter.close(None)]
    assert [line for lines in found for line in lines.events] == [b"2"]
