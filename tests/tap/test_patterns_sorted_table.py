"""Records sorted on disk: their keys sort like the values, and values come back as they were."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap.errors import SourceError
from balog.tap.patterns import request_then_emit
from balog.tap.patterns.ordering import SortedTable, sort_key

NUMBERS = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False, allow_infinity=False)
)


@given(NUMBERS, NUMBERS)
def test_keys_sort_like_numbers_of_any_type(one: Any, other: Any) -> None:
    assert (sort_key(one) < sort_key(other)) == (one < other)
    assert (sort_key(one) == sort_key(other)) == (one == other)


@given(st.text(st.characters()), st.text(st.characters()))
def test_keys_sort_like_texts(one: str, other: str) -> None:
    assert (sort_key(one) < sort_key(other)) == (one < other)


def test_null_comes_first() -> None:
    assert sort_key(None) < sort_key("") < sort_key("\ud800")
    assert sort_key(None) < sort_key(Decimal("-1E+999"))


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    record = {
        "text": "é\ud800",
        "large": -(10**40),
        "decimal": Decimal("1.10"),
        "bytes": b"\0",
        "time": datetime(2026, 1, 31, 12, tzinfo=timezone.utc),
        "naive": datetime(2026, 1, 31, 12),
        "date": date(2026, 1, 31),
        "nested": [{"a": None, "b": [True, 1.5, 2**63]}],
    }
    table = SortedTable(tmp_path)
    table.insert([(b"", 1, record)])
    assert list(table.pages(10)) == [[record]]
    table.close()
    assert list(tmp_path.iterdir()) == []


def test_a_value_without_a_form_in_json_names_its_record() -> None:
    with pytest.raises(SourceError, match="record 2 cannot be stored to be sorted"):
        list(request_then_emit([{"at": 1}, {"at": 2, "value": object()}], "at", in_memory=1))


def test_numbers_of_several_types_are_sorted_by_their_values() -> None:
    values: list[Any] = [Decimal("2.5"), 10**30, -1, 2, 0.1, Decimal("0.1"), None, -1.5]
    pages = request_then_emit([{"at": value} for value in values], "at", in_memory=3)
    wanted = [None, -1.5, -1, Decimal("0.1"), 0.1, 2, Decimal("2.5"), 10**30]
    assert [record["at"] for page in pages for record in page] == wanted
