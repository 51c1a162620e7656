import copy
import json
import pickle
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reading.validation import normalize_line
from balog.common.errors import EventError
from balog.event import (
    LEVELS,
    MAX_EVENT_BYTES,
    Event,
    Header,
    decode,
    decode_own,
    encode,
    format_timestamp,
    parse_level,
)

OLD_EVENT = Path(__file__).parents[1] / "data" / "event-0.0.1.json"
UTC = timezone.utc

text = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(text, json_values, max_size=5)
moments = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=st.just(UTC))
channels = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def document(**changes: Any) -> dict[str, Any]:
    """A good event of today as plain data; ``changes`` name a member of the header, or ``payload`` or ``schema``."""
    header = {
        "id": "LG0VbVMxkV1CS8RdUkRB0000",
        "channel": "tap.sync.done",
        "timestamp": "2026-11-20T07:46:12.123456Z",
        "level": "INFO",
        "composition": False,
        "context": {"fqdn": "worker-1", "process": 7},
    }
    top = {"schema": "0.1.0", "payload": {"cls_type": "log", "version": "1.0.0", "message": "hi"}}
    for key, value in changes.items():
        (top if key in top or key.startswith("top_") else header)[key.removeprefix("top_")] = value
    return {"schema": top.pop("schema"), "header": header, **top}


def written(**changes: Any) -> bytes:
    return json.dumps(document(**changes)).encode()


def refusal(data: bytes | str) -> EventError:
    """Return the error of what is not an event."""
    with pytest.raises(EventError) as refused:
        decode(data)
    return refused.value


def without(*path: str) -> bytes:
    data = document()
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return json.dumps(data).encode()


class TestRoundTrip:
    @given(channel=channels, level=st.sampled_from(list(LEVELS)), when=moments, context=objects, payload=objects)
    def test_what_was_made_is_read_back_from_one_line(
        self, channel: str, level: Any, when: datetime, context: dict[str, Any], payload: dict[str, Any]
    ) -> None:
        made = Event.new(channel, payload, level=level, context=context, timestamp=when, composition=True)

        line = encode(made)
        read = decode(line)

        assert b"\n" not in line
        assert b"\r" not in line
        assert read.header == made.header
        assert read.payload == payload
        assert (read.schema, read.level, read.header.composition) == ("0.1.0", level, True)

    @given(payload=objects, context=objects)
    def test_encoding_again_changes_no_byte(self, payload: dict[str, Any], context: dict[str, Any]) -> None:
        line = encode(decode(written(payload=payload, context=context)))

        assert encode(decode(line)) == encode(decode_own(line)) == line

    def test_the_payload_keeps_its_bytes_however_it_was_spelled(self) -> None:
        payload = b'{"n": 1.50e2, "big": 123456789012345678901234567890, "e": "\\u00e9", "\\u0065f": 2}'
        line = written().replace(b'{"cls_type": "log", "version": "1.0.0", "message": "hi"}', payload)

        assert payload in encode(decode(line))

    def test_a_document_of_several_lines_is_written_in_one(self) -> None:
        laid_out = json.dumps(document(payload={"text": "a\nb", "list": [1, {"x": None}]}), indent=2).encode()

        line = encode(decode(laid_out.replace(b"\n", b"\r\n")))

        assert len(line.splitlines()) == 1
        assert decode(line).payload == {"text": "a\nb", "list": [1, {"x": None}]}

    @pytest.mark.parametrize("form", [bytes, bytearray, memoryview, bytes.decode])
    def test_bytes_in_any_form_and_text_are_read(self, form: Any) -> None:
        assert decode(form(written(channel="été"))).header.channel == "été"

    def test_an_event_does_not_change_with_the_buffer_it_was_read_from(self) -> None:
        buffer = bytearray(written(payload={"n": 1}))
        event = decode(buffer)

        buffer[:] = b" " * len(buffer)
        buffer.clear()

        assert event.payload == {"n": 1}

    def test_one_megabyte_of_payload_is_one_event(self) -> None:
        assert len(decode(written(payload={"x": "y" * 2**20})).payload["x"]) == 2**20


class TestLazyPayload:
    def test_type_and_version_are_known_without_decoding_the_rest(self) -> None:
        event = decode(written(payload={"cls_type": "metric", "version": "2.1.0", "value": 1}))

        assert (event.cls_type, event.version) == ("metric", "2.1.0")
        assert "payload" not in event.__dict__

    @pytest.mark.parametrize(
        ("payload", "cls_type", "version"),
        [
            ({}, None, None),
            ({"cls_type": 5, "version": "1.0.0"}, None, "1.0.0"),
            ({"cls_type": "x", "version": 1}, "x", None),
            ({"cls_type": None, "version": {"a": []}}, None, None),
        ],
    )
    def test_a_name_that_is_no_text_is_no_name_and_does_not_hide_the_other(
        self, payload: dict[str, Any], cls_type: str | None, version: str | None
    ) -> None:
        event = decode(written(payload=payload))

        assert (event.cls_type, event.version) == (cls_type, version)
        assert event.payload == payload

    def test_a_payload_with_a_number_beyond_floats_passes_and_fails_only_when_read(self) -> None:
        event = decode(written().replace(b'"hi"', b"1e999"))

        assert b"1e999" in encode(event)
        with pytest.raises(EventError, match=r"^\$\.payload: cannot be read: number out of range") as refused:
            _ = event.payload
        assert refused.value.path == "$.payload"
        assert event.cls_type == "log"


class TestNew:
    def test_the_time_is_written_in_utc_with_microseconds(self) -> None:
        when = datetime(2026, 1, 2, 1, 0, tzinfo=timezone(timedelta(hours=2)))

        assert b'"timestamp":"2026-01-01T23:00:00.000000Z"' in encode(Event.new("c", {}, timestamp=when))

    @pytest.mark.parametrize(
        ("channel", "payload", "timestamp", "path"),
        [
            ("", {}, None, "$.header.channel"),
            ("x" * 1001, {}, None, "$.header.channel"),
            ("c", [1], None, "$.payload"),
            ("c", "text", None, "$.payload"),
            ("c", {}, datetime(2026, 1, 1), "$.header.timestamp"),
        ],
    )
    def test_an_event_that_could_not_be_read_is_not_made(
        self, channel: str, payload: Any, timestamp: datetime | None, path: str
    ) -> None:
        with pytest.raises(EventError) as refused:
            Event.new(channel, payload, timestamp=timestamp)
        assert refused.value.path == path

    def test_raw_bytes_are_taken_as_they_are(self) -> None:
        assert b'{"n": 1.0 }' in encode(Event.new("c", msgspec.Raw(b'{"n": 1.0 }')))


class TestFacility001:
    def test_the_first_balog_s_own_example_is_read(self) -> None:
        event = decode(OLD_EVENT.read_bytes())

        assert event.schema == "0.0.1"
        assert event.level is None
        assert event.header.channel == "tests.unit.test_log.foobar"
        assert event.header.timestamp == datetime(2014, 10, 7, 15, 6, 51, 641083, tzinfo=UTC)
        assert event.header.context == {}
        assert event.cls_type == "metrics"
        assert event.payload["values"][0] == {"name": "foo", "value": "1234.0"}

    def test_it_is_written_back_in_its_own_version_without_a_level(self) -> None:
        line = encode(decode(OLD_EVENT.read_bytes()))

        assert json.loads(line)["schema"] == "0.0.1"
        assert "level" not in json.loads(line)["header"]
        assert json.loads(line)["payload"] == json.loads(OLD_EVENT.read_bytes())["payload"]
        assert len(line.splitlines()) == 1

    @pytest.mark.parametrize("text", ["2014-10-07T15:06:51.641083", "2014-10-07T15:06:51"])
    def test_a_time_without_a_zone_is_in_utc(self, text: str) -> None:
        """As the first balog read it."""
        data = json.loads(OLD_EVENT.read_bytes())
        data["header"]["timestamp"] = text
        event = decode(json.dumps(data))

        assert event.header.timestamp == datetime.fromisoformat(text).replace(tzinfo=UTC)
        assert decode(encode(event)) == event
        assert normalize_line(json.dumps(data).encode()) == normalize_line(encode(event).replace(b".000000Z", b"Z"))

    @pytest.mark.parametrize("change", [{"schema": "0.1.0"}, {"sender": "x"}])
    def test_a_time_without_a_zone_excuses_nothing_else(self, change: dict[str, str]) -> None:
        data = json.loads(OLD_EVENT.read_bytes()) | change
        data["header"]["timestamp"] = "2014-10-07T15:06:51"

        assert refusal(json.dumps(data))

    def test_the_context_may_be_missing(self) -> None:
        data = json.loads(OLD_EVENT.read_bytes())
        del data["header"]["context"]

        assert decode(json.dumps(data)).header.context == {}

    def test_a_key_it_does_not_know_is_refused_as_in_every_known_version(self) -> None:
        data = json.loads(OLD_EVENT.read_bytes())
        data["header"]["more"] = 1

        assert "more" in str(refusal(json.dumps(data)))


class TestLaterVersions:
    @given(at_top=json_values, in_header=json_values, payload=objects, version=st.sampled_from(["0.1.1", "0.7.0"]))
    def test_a_later_minor_keeps_unknown_keys_and_writes_them_back(
        self, at_top: Any, in_header: Any, payload: dict[str, Any], version: str
    ) -> None:
        sent = document(schema=version, top_signature=at_top, lane=in_header, payload=payload)

        event = decode(json.dumps(sent))

        assert event.unknown == {"": {"signature": at_top}, "header": {"lane": in_header}}
        assert event.payload == payload
        assert json.loads(encode(event)) == sent

    def test_a_later_minor_keeps_the_bytes_of_payload_and_unknown_keys(self) -> None:
        line = written(schema="0.2.0", lane="LANE", payload={"n": "NUMBER"})
        line = line.replace(b'"LANE"', b'[1.50,  "\\u0041"]').replace(b'"NUMBER"', b"1e2")

        again = encode(decode(line))

        assert b'{"n": 1e2}' in again
        assert b'[1.50,  "\\u0041"]' in again

    def test_a_later_minor_without_unknown_keys_has_none(self) -> None:
        assert decode(written(schema="0.9.0")).unknown == {}

    def test_a_later_minor_is_still_held_to_what_is_known(self) -> None:
        assert refusal(written(schema="0.2.0", more=1, channel=5)).path == "$.header.channel"

    @pytest.mark.parametrize("version", ["2.0.0", "1.0.1", "1.1.0", "10.0.0"])
    @pytest.mark.parametrize("changes", [{}, {"top_more": 1}, {"id": 5}])
    def test_another_major_is_refused_by_its_version_whatever_else_is_in_it(
        self, version: str, changes: dict[str, Any]
    ) -> None:
        error = refusal(written(schema=version, **changes))
        assert (error.path, version in str(error)) == ("$.schema", True)

    @pytest.mark.parametrize("version", ["", "1", "1.0", "1.0.0.0", "v1.0.0", "1.01.0", "1.0.x", "1.0.0-rc1", "1.٣.0"])
    def test_what_is_no_version_is_refused(self, version: str) -> None:
        error = refusal(written(schema=version))
        assert (error.path, "is not a version" in str(error)) == ("$.schema", True)

    def test_a_version_of_a_million_digits_gets_a_short_answer(self) -> None:
        assert len(str(refusal(written(schema="1." + "0" * 10**6 + ".0")))) < 200


BAD_EVENTS = {
    "an array": (b"[]", "$"),
    "a number": (b"5", "$"),
    "nothing": (b"", "$"),
    "cut off": (b'{"schema":"0.1.0","header":{', "$"),
    "two documents": (written() + written(), "$"),
    "a literal that Python allows": (written().replace(b'"hi"', b"NaN"), "$"),
    "no UTF-8 in the payload": (written().replace(b'"hi"', b'"\xff"'), "$"),
    "no UTF-8 in the header": (written().replace(b"tap.sync", b"tap\xffsync"), "$"),
    "a lone surrogate": (written().replace(b'"hi"', b'"\\ud800"'), "$"),
    "text with a lone surrogate": ('"\ud800"', "$"),
    "no schema": (without("schema"), "$"),
    "no header": (without("header"), "$"),
    "no payload": (without("payload"), "$"),
    "no id": (without("header", "id"), "$.header"),
    "no channel": (without("header", "channel"), "$.header"),
    "no timestamp": (without("header", "timestamp"), "$.header"),
    "no level": (without("header", "level"), "$.header.level"),
    "schema of another kind": (written(schema=1), "$.schema"),
    "header of another kind": (
        written().replace(b'"header": {', b'"header": [{').replace(b'}, "p', b'}], "p'),
        "$.header",
    ),
    "unknown key at the top": (written(top_more=1), "$"),
    "unknown key in the header": (written(more=1), "$.header"),
    "empty id": (written(id=""), "$.header.id"),
    "id with a space": (written(id="LG12 3"), "$.header.id"),
    "id with letters beyond ASCII": (written(id="LGé"), "$.header.id"),
    "id of 129 characters": (written(id="x" * 129), "$.header.id"),
    "a key twice": (written().replace(b'"level"', b'"lev\\u0065l":"DEBUG","level"'), "$.header.level"),
    "a key of the payload twice": (
        written(payload={"a": {}}).replace(b"{}", b'[{"b":1,"\\u0062":2}]'),
        "$.payload.a[0].b",
    ),
    "id with a newline": (written(id="LG1\n"), "$.header.id"),
    "empty channel": (written(channel=""), "$.header.channel"),
    "long channel": (written(channel="x" * 1001), "$.header.channel"),
    "time without an offset": (written(timestamp="2026-11-20T07:46:12"), "$.header.timestamp"),
    "time as a number": (written(timestamp=1763624772), "$.header.timestamp"),
    "time that is none": (written(timestamp="2026-02-30T07:46:12Z"), "$.header.timestamp"),
    "time before the year one in UTC": (written(timestamp="0001-01-01T00:00:00+10:00"), "$.header.timestamp"),
    "level of another name": (written(level="NOTICE"), "$.header.level"),
    "level in small letters": (written(level="info"), "$.header.level"),
    "level null": (written(level=None), "$.header.level"),
    "composition as a word": (written(composition="yes"), "$.header.composition"),
    "context as a list": (written(context=[]), "$.header.context"),
    "context null": (written(context=None), "$.header.context"),
    "payload as a list": (written(payload=[]), "$.payload"),
    "payload null": (written(payload=None), "$.payload"),
    "payload as text": (written(payload="{}"), "$.payload"),
}


class TestBadEvents:
    @pytest.mark.parametrize(("data", "path"), BAD_EVENTS.values(), ids=BAD_EVENTS)
    def test_the_error_names_the_path_in_one_line(self, data: bytes | str, path: str) -> None:
        error = refusal(data)

        assert error.path == path
        assert str(error) == f"{path}: {error.reason}"
        assert len(str(error).splitlines()) == 1

    def test_a_key_of_the_document_cannot_break_or_flood_the_error(self) -> None:
        error = refusal(written(**{"top_x\n\x1b[2J` - at `$.y`" + "z" * 10**6: 1}))

        assert str(error).isprintable()
        assert len(str(error)) < 400
        assert error.path == "$"

    def test_an_event_beyond_the_limit_is_refused_undecoded(self) -> None:
        assert f"the limit is {MAX_EVENT_BYTES}" in str(refusal(b"[" * (MAX_EVENT_BYTES + 1)))

    def test_the_limit_counts_bytes_of_text_too(self) -> None:
        assert "the limit is" in str(refusal("é" * (MAX_EVENT_BYTES // 2 + 1)))

    @pytest.mark.parametrize("place", ["payload", "context"])
    @pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "1.0.0"])
    def test_nesting_without_end_is_refused(self, place: str, version: str) -> None:
        deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
        line = written(schema=version, top_more=1, **{place: {"deep": "HERE"}}).replace(b'"HERE"', deep)

        with pytest.raises(EventError, match=r"nested too deep|unknown field"):
            decode(line)

    def test_a_deep_payload_laid_out_over_lines_is_an_event_error_and_nothing_worse(self) -> None:
        deep = b"\n[" * 100_000 + b"]" * 100_000
        event = Event.new("c", msgspec.Raw(b'{"a":' + deep + b"}"))

        with pytest.raises(EventError):
            encode(event)

    @given(data=st.binary(max_size=200) | st.text(max_size=200))
    def test_anything_at_all_is_an_event_or_an_event_error(self, data: bytes | str) -> None:
        try:
            decode(data)
        except EventError:
            pass

    @given(at=st.integers(0, 400), byte=st.integers(0, 255))
    def test_a_changed_byte_gives_an_event_or_an_event_error(self, at: int, byte: int) -> None:
        line = bytearray(written())
        line[at % len(line)] = byte
        try:
            event = decode(line)
        except EventError:
            return
        assert decode(encode(event)).header == event.header


class TestTimes:
    @pytest.mark.parametrize(
        ("sent", "read"),
        [
            ("2026-11-20T07:46:12Z", datetime(2026, 11, 20, 7, 46, 12, tzinfo=UTC)),
            ("2026-11-20T07:46:12.5+01:00", datetime(2026, 11, 20, 6, 46, 12, 500000, tzinfo=UTC)),
            ("2026-11-20t07:46:12z", datetime(2026, 11, 20, 7, 46, 12, tzinfo=UTC)),
            ("2026-11-20 07:46:12-00:00", datetime(2026, 11, 20, 7, 46, 12, tzinfo=UTC)),
        ],
    )
    def test_every_form_of_rfc_3339_is_read_into_utc(self, sent: str, read: datetime) -> None:
        timestamp = decode(written(timestamp=sent)).header.timestamp

        assert timestamp == read
        assert timestamp.tzinfo is UTC

    @given(nanoseconds=st.integers(-(10**18), 10**19))
    def test_nanoseconds_are_written_as_the_microsecond_they_fall_into(self, nanoseconds: int) -> None:
        expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)

        assert format_timestamp(nanoseconds) == expected.isoformat(timespec="microseconds").replace("+00:00", "Z")


class TestLevels:
    @pytest.mark.parametrize(
        ("name", "level"),
        [
            ("info", "INFO"),
            ("Warn", "WARNING"),
            ("FATAL", "CRITICAL"),
            ("exception", "ERROR"),
            ("loud", None),
            ("", None),
        ],
    )
    def test_names_in_any_case_stand_for_five_levels(self, name: str, level: str | None) -> None:
        assert parse_level(name) == level

    def test_header_and_event_agree_on_a_missing_level(self) -> None:
        header = Header(id="LG1", channel="c", timestamp=datetime.now(UTC))

        assert Event(schema="0.0.1", header=header, stored_payload=msgspec.Raw(b"{}")).level is None


class TestChanges:
    """An event whose payload changes."""

    def test_a_payload_that_was_read_only_keeps_its_bytes(self) -> None:
        """Also numbers that are written in another way, and spaces."""
        line = written(payload={}).replace(b"{}}", b'{"n": 1.0e2, "big":123456789012345678901234567890}}')
        line = line.replace(b", ", b",").replace(b": ", b":").replace(b"1.0e2,", b"1.0e2, ")
        event = decode(line)
        assert event.payload["n"] == 100

        assert encode(event) == line
        assert not event.has_changed_payload

    @pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0.0, -0.0), ([1], [1, 2]), ({"a": {}}, {})])
    def test_a_value_that_is_merely_equal_is_a_change(self, old: object, new: object) -> None:
        """1 == True."""
        event = Event.new("a", {"v": old, "w": 1})
        event.payload["v"] = new

        assert json.dumps(json.loads(encode(event))["payload"]) == json.dumps({"v": new, "w": 1})
        assert json.loads(bytes(event.raw_payload)) == {"v": new, "w": 1}

    @given(payload=objects, key=text)
    def test_what_is_read_is_what_is_written(self, payload: dict[str, object], key: str) -> None:
        event = decode(encode(Event.new("a", payload)))
        event.payload[key] = "new"
        again = decode(encode(event))

        assert again.payload == {**payload, key: "new"}

    def test_the_type_follows_the_change(self) -> None:
        event = Event.new("a", {"cls_type": "old", "version": "1.0.0"})
        assert event.cls_type == "old"
        event.payload["cls_type"] = "new"

        assert (event.cls_type, event.version) == ("new", "1.0.0")
        event.raw_payload = msgspec.Raw(b'{"cls_type":"third"}')
        assert event.cls_type == "third"
        assert event.payload == {"cls_type": "third"}

    @pytest.mark.parametrize(("payload", "reason"), [([1], "object"), ({"o": object()}, "object"), (None, "object")])
    def test_a_payload_that_cannot_be_written_is_an_error(self, payload: Any, reason: str) -> None:
        event = Event.new("a", {})
        event.payload = payload

        with pytest.raises(EventError, match=reason) as caught:
            encode(event)
        assert caught.value.path == "$.payload"

    def test_copies_keep_unknown_keys_of_a_later_version(self) -> None:
        line = written(more=1, top_schema="0.9.0", top_more={"a": 2})

        for made in (copy.copy(decode(line)), copy.deepcopy(decode(line)), pickle.loads(pickle.dumps(decode(line)))):
            assert json.loads(encode(made)) == json.loads(line)

    def test_a_copy_is_that_of_a_dict(self) -> None:
        event = Event.new("a", {"n": 1})
        other = event.copy()
        other["payload"] = {"n": 2}

        assert (event.payload, other.payload) == ({"n": 1}, {"n": 2})


class TestDictAccess:
    """An event as the dict that it was in the first balog."""

    def test_it_reads_as_its_json(self) -> None:
        event = decode(written())

        assert dict(event.items()) == dict(event) == {key: event[key] for key in ("schema", "header", "payload")}
        assert len(event) == 3
        assert event.values() == tuple(event[key] for key in event)
        header = event["header"]
        assert dict(header.items())["channel"] == header.channel
        assert len(header) == len(list(header))

    def test_values_can_be_replaced(self) -> None:
        event = decode(written())
        event["header"]["channel"] = "b"
        event.update({"payload": {"n": 5}})

        found = json.loads(encode(event))
        assert found["header"]["channel"] == "b"
        assert found["payload"] == {"n": 5}

    @pytest.mark.parametrize("key", ["tag", "raw_payload", "cls_type"])
    def test_no_other_key_can_be_set(self, key: str) -> None:
        with pytest.raises(KeyError, match="Event has schema, header, payload"):
            decode(written())[key] = 1
