import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.event import Event, decode, encode
from balog.singer import LogMessage, parse_log, to_event, write_log

names = st.text(min_size=1, max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(names, values, max_size=5)


class TestParseLog:
    @pytest.mark.parametrize(
        ("line", "level"),
        [
            (b'{"type": "LOG", "level": "ERROR", "value": 1}', "ERROR"),
            (b'{"type":"log","level":"warn","value":1}', "WARNING"),
            (b'{"value": 1, "type": "LOG", "level": "DEBUG"}', "DEBUG"),
            (b'{"type": "LOG", "type": "DEBUG", "value": 1}', "DEBUG"),
            (b'{"type": "LOG", "type": "ERROR", "level": "INFO", "value": 1}', "INFO"),
            (b'{"type": "LOG", "value": 1}', "INFO"),
            (b'{"type": "LOG", "level": "LOUD", "value": 1}', "INFO"),
            (b'{"type": "LOG", "level": 3, "value": 1}', "INFO"),
        ],
    )
    def test_every_form_of_level_is_read(self, line, level):
        log = parse_log(line)
        assert log is not None
        assert (log.level, bytes(log.value)) == (level, b"1")

    @pytest.mark.parametrize(
        "line",
        [
            b'{"type": "RECORD", "stream": "LOG", "record": {"type": "LOG"}}',
            b'{"type": "DEBUG", "value": {"x": "LOG"}}',
            b'"LOG"',
            b'{"type": "LOG", ',
            b'{"type": "LOG", "level": "INFO", "\x80alue": {}}',
            b'{"type": "LOG", "level": "INFO", "value": ' + b"[" * 100_000,
        ],
    )
    def test_anything_else_is_no_log(self, line):
        assert parse_log(line) is None

    @pytest.mark.parametrize(
        ("line", "value"),
        [
            (
                b'{"caller": "Titanic", "level": "INFO", "message": "hi", "tags": {}, "type": "LOG"}',
                {"caller": "Titanic", "message": "hi", "tags": {}},
            ),
            (b'{"type": "LOG"}', None),
            (b'{"type": "LOG", "level": "INFO", "value": null}', None),
        ],
    )
    def test_without_a_value_it_is_all_other_keys(self, line, value):
        """Given what a source of Mage writes, which has its message beside the type, then nothing of it is lost."""
        log = parse_log(line)
        assert (log.level, json.loads(bytes(log.value))) == ("INFO", value)


class TestToEvent:
    def test_a_whole_event_keeps_its_bytes(self):
        """Given an event with a payload in an odd layout, then the event's own bytes come out."""
        raw = encode(Event.new("a.b", {"cls_type": "x"})).replace(b'"cls_type":"x"', b'"cls_type" :  "x", "n": 1.50')
        log = parse_log(b'{"type": "LOG", "level": "INFO", "value": ' + raw + b"}")
        event, body = to_event(log)
        assert body == raw
        assert event.header.channel == "a.b"

    @pytest.mark.parametrize(
        ("value", "channel", "payload"),
        [
            (
                {"metric": {"type": "counter", "metric": "record_count", "value": 10, "tags": {"a": "tag"}}},
                "singer.metric",
                {
                    "cls_type": "metric",
                    "version": "1.0.0",
                    "type": "counter",
                    "metric": "record_count",
                    "value": 10,
                    "tags": {"a": "tag"},
                },
            ),
            (
                {"message": "I'm a teapot", "code": "418"},
                "singer.log",
                {
                    "cls_type": "log",
                    "version": "1.0.0",
                    "message": "I'm a teapot",
                    "severity": "ERROR",
                    "fields": {"code": "418"},
                },
            ),
            ({"cls_type": "mine", "n": 1}, "singer.log", {"cls_type": "mine", "n": 1}),
            ({"metric": "not one", "n": 1}, "singer.log", {"metric": "not one", "n": 1}),
            ("words", "singer.log", {"cls_type": "log", "version": "1.0.0", "message": "words", "severity": "ERROR"}),
            ([1], "singer.log", {"cls_type": "log", "version": "1.0.0", "message": "[1]", "severity": "ERROR"}),
        ],
    )
    def test_free_json_is_wrapped(self, value, channel, payload):
        log = parse_log(json.dumps({"type": "LOG", "level": "ERROR", "value": value}).replace(", [1]", ",[1]").encode())
        event, body = to_event(log)
        assert (event.header.channel, event.level, event.payload) == (channel, "ERROR", payload)
        assert decode(body).payload == payload

    def test_what_a_source_of_mage_counted_is_a_metric(self):
        line = b'{"caller":"Titanic","level":"INFO","message":"%b","tags":{"stream":"a","records":%b},"type":"LOG"}'
        event, _ = to_event(parse_log(line % (b"Synced stream completed.", b"891")))
        assert event.header.channel == "singer.metric"
        assert event.payload["metric"] == "record_count"
        assert (event.payload["value"], event.payload["tags"]) == (891, {"stream": "a"})
        for odd in (line % (b"Synced stream started.", b"891"), line % (b"Synced stream completed.", b"null")):
            event, _ = to_event(parse_log(odd))
            assert (event.cls_type, event.header.channel) == ("log", "singer.log")

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda event: event["header"].pop("id"),
            lambda event: event.update(schema="7.0.0"),
            lambda event: event["header"].update(level="LOUD"),
        ],
    )
    def test_what_only_looks_like_an_event_is_kept_whole_and_says_why(self, spoil):
        document = json.loads(encode(Event.new("a", {"cls_type": "x"})))
        spoil(document)
        event, _ = to_event(parse_log(json.dumps({"type": "LOG", "level": "INFO", "value": document}).encode()))
        assert event.payload["fields"] == {"value": document}
        assert event.payload["message"].startswith("a LOG value that looks like an event and is not one: $.")

    def test_values_that_cannot_be_decoded_are_kept_as_text(self):
        event, body = to_event(LogMessage(level="INFO", value=parse_log(b'{"type":"LOG","value":{"n":1e999}}').value))
        assert event.payload["message"] == '{"n":1e999}'
        assert decode(body).cls_type == "log"

    @given(values)
    def test_any_value_becomes_one_line_that_decodes(self, value):
        line = json.dumps({"type": "LOG", "level": "INFO", "value": value}).encode()
        event, body = to_event(parse_log(line))
        assert b"\n" not in body
        assert decode(body).header.id == event.header.id

    @given(objects)
    def test_an_event_travels_as_a_log_message(self, payload):
        event = Event.new("a.b", payload, level="WARNING")
        log = parse_log(write_log(event))
        assert log.level == "WARNING"
        back, body = to_event(log)
        assert (back, body) == (event, encode(event))
