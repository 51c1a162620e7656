"""What a filter makes of an event: itself, or another one with parts of it."""

import json
import pickle
from datetime import datetime, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.event import Event, decode, encode
from balog.filters.event_filter import EventFilter

AT = datetime(2026, 11, 20, 7, 46, 12, 123456, tzinfo=timezone.utc)


def event(**payload):
    return Event.new("shop", payload, level="ERROR", context={"run_id": "r1", "process": 7}, timestamp=AT)


def made(one, select, **options):
    return EventFilter("f", select=select, cls_type="part", **options).make(one).payload


class TestPassing:
    def test_without_select_an_event_is_what_it_was(self):
        one = event(cls_type="order", n=1)
        assert EventFilter("f", where="payload.n = 1").make(one) is one

    @pytest.mark.parametrize(("where", "wanted"), [(None, True), ("payload.n = 1", True), ("payload.n > 1", False),
                                                   ("payload.missing > 1", False)])  # fmt: skip
    def test_it_wants_what_meets_its_condition(self, where, wanted):
        assert EventFilter("f", where).wants(event(n=1)) is wanted


class TestSelecting:
    def test_the_header_is_kept_but_for_the_id(self):
        one = event(n=1)
        before, after = one.header, EventFilter("f", select={"n": "payload.n"}, cls_type="part").make(one).header
        assert after.id != before.id
        assert msgspec.structs.replace(after, id=before.id) == before

    def test_the_payload_is_of_its_type_and_holds_the_fields_in_order(self):
        found = made(event(n=1, a={"b": [1, "x"]}), {"z": "payload.a", "a": "payload.n + 1"}, version="1.0.0")
        assert list(found.items()) == [("cls_type", "part"), ("version", "1.0.0"), ("z", {"b": [1, "x"]}), ("a", 2)]

    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("timestamp", "2026-11-20T07:46:12.123456Z"),
            ("level", "ERROR"),
            ("context.run_id", "r1"),
            ("payload.n > 0", True),
            ("payload.big", 2**70),
            ("payload.big * payload.big", 2**140),
            ("payload.text || '!'", "größe!"),
        ],
    )
    def test_a_value_is_written_as_json_has_it(self, expression, value):
        one = decode(json.dumps(json.loads(encode(event(n=1))) | {"payload": {"n": 1, "big": 2**70, "text": "größe"}}))
        body = encode(EventFilter("f", select={"x": expression}, cls_type="part").make(one))
        assert json.loads(body)["payload"]["x"] == value

    @pytest.mark.parametrize("expression", ["payload.missing", "NULL", "payload.n / 0", "payload.n * 1e300 * 1e300"])
    def test_what_has_no_value_is_left_out(self, expression):
        assert made(event(n=7), {"x": expression}) == {"cls_type": "part"}

    def test_a_time_before_1970_is_a_time(self):
        one = event()
        one.header.timestamp = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)
        assert made(one, {"x": "timestamp"})["x"] == "1969-12-31T23:59:59.999999Z"


class TestIds:
    @given(st.from_regex(r"LG[0-9A-Za-z]{1,40}", fullmatch=True))
    def test_an_id_is_an_id_and_always_the_same(self, name):
        one = event(n=1)
        one.header.id = name
        selection = EventFilter("f", select={"n": "payload.n"}, cls_type="part")
        after = selection.make(one)
        assert selection.make(one).header.id == after.header.id
        assert decode(encode(after)).header.id != name

    def test_it_tells_the_time_of_the_old_one(self):
        one = event(n=1)
        assert EventFilter("f", select={"n": "payload.n"}, cls_type="p").make(one).header.id[:10] == one.header.id[:10]

    def test_two_filters_make_two_events_of_one(self):
        one = event(n=1)
        ids = {EventFilter(name, select={"n": "payload.n"}, cls_type="p").make(one).header.id for name in ("f", "g")}
        assert len(ids) == 2


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "path"),
        [
            ({"where": "payload."}, "where"),
            ({"where": "UPPER(channel)"}, "where"),
            ({"select": {"a b": "1 +"}, "cls_type": "p"}, "select.a b"),
            ({"select": {"a": "1"}}, "cls_type"),
            ({"select": {"cls_type": "'x'"}, "cls_type": "p"}, "select.cls_type"),
            ({"cls_type": "p"}, "cls_type"),
            ({"version": "1.0.0"}, "version"),
        ],
    )
    def test_what_fits_not_is_refused_with_its_place(self, given, path):
        with pytest.raises(ConfigError) as caught:
            EventFilter("f", **given)
        assert caught.value.path == path


def test_it_goes_to_other_processes():
    selection = EventFilter("f", "payload.n = 1", {"n": "payload.n"}, "part", "1.0.0")
    one = event(n=1)
    assert encode(pickle.loads(pickle.dumps(selection)).make(one)) == encode(selection.make(one))
