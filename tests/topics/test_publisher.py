"""Lines that become messages, and what a schema refuses."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import EventError, MessageError
from balog.event import Event, decode, encode
from balog.registry import open_registry
from balog.topics import Message, publisher
from balog.topics.memory import MemoryTopic, MemoryTopics
from balog.topics.publisher import SchemaCheck, as_message, publish_all, wrap

keys = st.text(max_size=5)
values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=5)


@given(st.dictionaries(keys, values, max_size=5), st.dictionaries(keys, st.text(max_size=5), max_size=3))
def test_an_object_s_members_win(found: dict[str, object], members: dict[str, str]) -> None:
    event = decode(wrap(msgspec.json.encode(found), "a.b", "ERROR", members))
    assert event.payload == {**members, **found}
    assert (event.header.channel, event.level) == ("a.b", "ERROR")


@given(st.binary(max_size=40))
def test_any_line_is_wrapped_or_refused(line: bytes) -> None:
    try:
        decode(wrap(line, "a", "INFO", {"cls_type": "x"}))
    except EventError:
        return
    assert isinstance(msgspec.json.decode(line), dict)


@pytest.mark.parametrize(
    ("line", "channel"),
    [(n, "a") for n in (b"[]", b"1", b"{", b'{"a":"\xff"}', b'{"a":1,"a":2}')] + [(b"{}", ""), (b"{}", 2000 * "x")],
)
def test_what_is_no_object_or_channel_is_refused(line: bytes, channel: str) -> None:
    with pytest.raises(EventError) as caught:
        wrap(line, channel, "INFO", {})
    assert "\n" not in str(caught.value)


def test_a_line_over_several_is_one_message_of_one_line() -> None:
    event = Event.new("a", {"n": 1})
    message = as_message(encode(event).replace(b",", b",\n"))
    assert (message.id, message.body) == (event.header.id, encode(event))


def test_batches_end_by_number_or_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "_BATCH", 3)
    monkeypatch.setattr(publisher, "_BATCH_BYTES", 100)
    topic = MemoryTopics().topic("t")
    sizes = [1, 1, 1, 60, 60, 1, 200, 5]
    sent = [Message(str(number), bytes(size)) for number, size in enumerate(sizes)]
    assert list(publish_all(topic, sent, pytest.fail)) == [(3, 3), (1, 1), (2, 2), (1, 1), (1, 1)]
    assert list(publish_all(topic, sent[:2], pytest.fail)) == [(2, 0)]


def test_what_a_topic_can_never_take_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(self: MemoryTopic, messages: list[Message]) -> int:
        if any(len(message.body) > 9 for message in messages):
            raise MessageError("too large")
        return store(self, messages)

    store = MemoryTopic.publish
    monkeypatch.setattr(MemoryTopic, "publish", publish)
    topic = MemoryTopics().topic("t")
    sent = [Message(f"m{number}", bytes(10 if number in (0, 7, 8, 19) else 1)) for number in range(20)]
    refused: list[str] = []
    assert list(publish_all(topic, sent, lambda message, error: refused.append(message.id))) == [(16, 16)]
    assert refused == ["m0", "m7", "m8", "m19"]
    assert [message.id for message in topic.peek(20)] == [message.id for message in sent if message.id not in refused]


class TestSchemas:
    @pytest.mark.parametrize(
        "payload",
        [{}, {"cls_type": "unknown", "version": "1.0.0"}, {"cls_type": "metric"}, {"cls_type": "../x", "version": "1"}],
    )
    def test_what_no_schema_is_about_is_taken(self, payload: dict[str, object]) -> None:
        SchemaCheck()(Event.new("a", payload))

    def test_a_payload_that_breaks_its_schema_is_refused_without_its_values(self) -> None:
        with pytest.raises(EventError, match=r"^\$\.payload.*: breaks its schema: .*, and \d more$") as caught:
            SchemaCheck()(Event.new("a", {"cls_type": "metric", "version": "1.0.0", "metric": ["hunter2"]}))
        assert "hunter2" not in str(caught.value)

    def test_a_header_that_breaks_its_schema_is_refused(self) -> None:
        event = Event.new("a", {})
        event.header.channel = ""
        with pytest.raises(EventError, match=r"^\$\.header\.channel: breaks its schema: is shorter"):
            SchemaCheck()(event)

    def test_a_registry_s_types_are_known_too(self, tmp_path: Path) -> None:
        (tmp_path / "order").mkdir()
        (tmp_path / "order" / "1.0.0.json").write_text('{"required": ["id"]}')
        with open_registry(str(tmp_path)) as registry, pytest.raises(EventError, match='"id" is a required property'):
            SchemaCheck(registry)(Event.new("a", {"cls_type": "order", "version": "1.0.0"}))
