from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap.bookmarks import times
from balog.tap.bookmarks.order import Order, order_of
from balog.tap.bookmarks.watermark import Watermark
from balog.tap.errors import RecordError

TIME = {"type": ["null", "string"], "format": "date-time"}

moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))
offsets = st.integers(-18 * 60, 18 * 60)


def written(moment: datetime, digits: str, offset: int | None, separator: str = "T") -> str:
    """Write a moment of UTC, with digits after its second, as somebody at this offset does; None is ``Z``."""
    local = moment.replace(microsecond=0) + timedelta(minutes=offset or 0)
    hours, minutes = divmod(abs(offset or 0), 60)
    zone = "Z" if offset is None else f"{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}"
    return f"{local.isoformat(separator)}{'.' + digits if digits else ''}{zone}"


@st.composite
def instants(draw: st.DrawFn) -> tuple[tuple[datetime, Decimal], str]:
    """Give what can be compared by Python itself, and a text of the same instant."""
    moment = draw(st.one_of(moments, st.sampled_from([datetime(2026, 11, 20, 7, 46, 12)])))
    digits = draw(st.text("0159", max_size=9))
    text = written(
        moment, digits, draw(st.none() | st.sampled_from([0, 60, -330]) | offsets), draw(st.sampled_from("T "))
    )
    return (moment.replace(microsecond=0), Decimal(f"0.{digits or 0}")), text


class TestTimes:
    @given(instants(), instants())
    def test_ranks_are_in_the_order_of_the_instants(self, one: Any, other: Any) -> None:
        assert (times.rank(one[1]) < times.rank(other[1])) == (one[0] < other[0])
        assert (times.rank(one[1]) == times.rank(other[1])) == (one[0] == other[0])

    @given(instants(), instants())
    def test_texts_that_can_be_compared_are_in_the_order_of_their_ranks(self, one: Any, other: Any) -> None:
        (_, left), (_, right) = one, other
        end = times.comparable_end(left)
        if end and len(left) == len(right) and right[10] == "T" and right.endswith(end):
            assert (left < right) == (times.rank(left) < times.rank(right))
            assert (left == right) == (times.rank(left) == times.rank(right))

    @given(moments, st.text("0159", max_size=9), st.integers(0, 10**7))
    def test_an_earlier_time_is_earlier_by_the_seconds(self, moment: datetime, digits: str, seconds: int) -> None:
        text = times.earlier(written(moment, digits, 90), seconds)
        expected = max(
            moment.replace(microsecond=0) - timedelta(seconds=min(seconds, (moment - datetime.min).total_seconds())),
            datetime.min,
        )
        assert text == written(expected, digits, None)

    @pytest.mark.parametrize(
        ("text", "seconds", "expected"),
        [
            ("2026-11-20", 1, "2026-11-19"),
            ("2026-11-20", 86400, "2026-11-19"),
            ("2026-11-20T00:00:00", 1, "2026-11-19T23:59:59"),
            ("2026-11-20T01:00:00.5+01:00", 0, "2026-11-20T00:00:00.5Z"),
            ("0001-01-01T00:00:05Z", 60, "0001-01-01T00:00:00Z"),
        ],
    )
    def test_what_is_earlier_keeps_its_form(self, text: str, seconds: int, expected: str) -> None:
        assert times.earlier(text, seconds) == expected

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("2016-12-31T23:59:59.9Z", "2016-12-31T23:59:60Z"),
            ("2016-12-31T23:59:60.9Z", "2017-01-01T00:00:00Z"),
            ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00"),
            ("2026-11-20", "2026-11-20T00:00:00.000000001Z"),
            ("2026-11-20T00:00+0100", "2026-11-20 00:00"),
        ],
    )
    def test_the_edges_of_calendars_and_minutes_have_their_order(self, before: str, after: str) -> None:
        assert times.rank(before) < times.rank(after)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "yesterday",
            "2026-02-30",
            "2026-11-20T24:00:00Z",
            "2026-11-20T00:00:61Z",
            "20261120",
            "2026-11-20T00:00:00Z\n",
        ],
    )
    def test_what_is_no_time_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError):
            times.rank(text)


class TestOrderOf:
    @pytest.mark.parametrize(
        ("schema", "kind"),
        [
            (TIME, "time"),
            ({"type": "string", "format": "date"}, "time"),
            ({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}, "time"),
            ({"type": ["integer", "null"]}, "number"),
            ({"oneOf": [{"type": "number"}, {"type": "null"}]}, "number"),
            ({"type": "string"}, "text"),
            ({"type": ["string", "integer"]}, "any"),
            ({}, "any"),
            (True, "any"),
        ],
    )
    def test_the_schema_says_the_kind(self, schema: Any, kind: str) -> None:
        assert order_of({"properties": {"k": schema}}, "k").kind == kind

    @pytest.mark.parametrize("schema", [None, {}, {"properties": None}, {"properties": {}}])
    def test_a_schema_that_does_not_know_the_key_says_nothing(self, schema: Any) -> None:
        assert order_of(schema, "k").kind == "any"


class TestOrder:
    def test_numbers_are_compared_as_numbers(self) -> None:
        order = Order("number")
        assert order.is_before(9, 10)
        assert order.is_before(2**53, Decimal(2**53 + 1))
        assert order.is_before("9", 10)
        assert not order.is_before(1.0, 1)

    def test_texts_are_compared_by_code_points(self) -> None:
        assert Order("text").is_before("10", "9")

    def test_objects_of_times_are_times(self) -> None:
        aware = datetime(2026, 11, 20, 1, tzinfo=timezone(timedelta(hours=1)))
        assert not Order("time").is_before(aware, "2026-11-20T00:00:00Z")
        assert Order("time").is_before(aware.date(), "2026-11-20T00:00:01Z")

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("time", 5),
            ("time", "soon"),
            ("number", float("nan")),
            ("number", True),
            ("number", "x"),
            ("text", 5),
            ("any", [1]),
            ("any", float("inf")),
        ],
    )
    def test_a_value_of_another_kind_is_refused_without_being_named(self, kind: Any, value: Any) -> None:
        with pytest.raises(ValueError, match="expected a") as error:
            Order(kind).rank(value)
        assert "soon" not in str(error.value)

    def test_numbers_and_texts_have_no_order_among_themselves(self) -> None:
        with pytest.raises(ValueError, match="cannot be compared"):
            Order("any").is_before("5", 5)

    def test_a_lookback_moves_times_by_whole_seconds_and_numbers_by_themselves(self) -> None:
        assert Order("time").back("2026-11-20T00:00:01.5Z", 0.2) == "2026-11-20T00:00:00.5Z"
        assert Order("number").back(10, 3) == 7
        assert Order("number").back(Decimal("10.5"), 0.1) == Decimal("10.4")

    def test_a_text_cannot_be_moved(self) -> None:
        with pytest.raises(ValueError, match="lookback"):
            Order("text").back("b", 1)


def watched(schema: Any, values: list[Any]) -> Watermark:
    watch = Watermark("contacts", "k", order_of({"properties": {"k": schema}}, "k"))
    for value in values:
        watch.see({"k": value})
    return watch


class TestWatch:
    @given(st.lists(instants(), max_size=20), st.booleans())
    def test_the_quick_way_finds_what_the_slow_one_does(self, found: Any, is_sorted: bool) -> None:
        """As long as records come in order or not: the largest value, and whether one was smaller than one before."""
        given_ = sorted(found, key=lambda one: one[0]) if is_sorted else found
        watch = watched(TIME, [text for _, text in given_])
        is_ordered = all(one[0] <= other[0] for one, other in pairwise(given_))
        assert watch.is_ordered == is_ordered
        if given_:
            highest = max(when for when, _ in given_)
            assert times.rank(watch.highest) in {times.rank(text) for when, text in given_ if when == highest}

    @given(st.lists(st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=20))
    def test_numbers_of_both_kinds_and_nulls(self, values: list[Any]) -> None:
        watch = watched({"type": "number"}, values)
        numbers = [value for value in values if value is not None]
        assert watch.highest == max(numbers, default=None)
        assert watch.is_ordered == (numbers == sorted(numbers))

    @given(st.lists(st.none() | st.text(max_size=3), max_size=20))
    def test_texts(self, values: list[Any]) -> None:
        watch = watched({"type": "string"}, values)
        texts = [value for value in values if value is not None]
        assert (watch.highest, watch.is_ordered) == (max(texts, default=None), texts == sorted(texts))

    def test_texts_of_numbers(self) -> None:
        watch = watched({"type": "number"}, ["10", "9"])
        assert (watch.highest, watch.is_ordered) == ("10", False)

    @pytest.mark.parametrize(
        ("schema", "values"),
        [
            (TIME, [f"2026-11-20T00:00:{second:02}Z" for second in range(59, 0, -1)]),
            ({"type": "integer"}, range(59, 0, -1)),
        ],
    )
    def test_records_without_order_are_as_quick(
        self, schema: Any, values: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked = []
        rank = Order.rank
        monkeypatch.setattr(Order, "rank", lambda self, value: looked.append(value) or rank(self, value))
        watch = watched(schema, values)
        assert (watch.is_ordered, len(looked)) == (False, 1)

    def test_a_record_without_its_key_is_refused(self) -> None:
        watch = watched(TIME, ["2026-11-20T00:00:00Z"])
        with pytest.raises(RecordError, match=r"contacts: \$\.k: the replication key is missing"):
            watch.see({"id": 1})
        assert watch.highest == "2026-11-20T00:00:00Z"

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "5x", []])
    def test_a_value_without_a_place_in_the_order_is_refused_and_not_kept(self, value: Any) -> None:
        watch = watched({"type": "number"}, [1.5, 2.5])
        with pytest.raises(RecordError, match=r"\$\.k: expected a number"):
            watch.see({"k": value})
        assert (watch.highest, watch.is_ordered) == (2.5, True)

    def test_a_text_that_only_looks_like_the_times_before_never_gets_to_be_the_bookmark(self) -> None:
        watch = watched(TIME, ["2026-11-20T00:00:00Z", "2026-11-xxT00:00:00Z"])
        with pytest.raises(RecordError, match="expected a time"):
            _ = watch.highest

    def test_a_value_of_ones_own(self) -> None:
        watch = Watermark("contacts", "k", Order("number"), lambda record: record["a"] * 10)
        watch.see({"a": 2})
        assert watch.highest == 20
