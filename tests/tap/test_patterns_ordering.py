"""Records that a source does not sort come in the order of their key, also more than memory holds."""

import gc
import tempfile
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap.errors import SourceError, TapError
from balog.tap.patterns import request_then_emit


def rows(*values: Any) -> list[dict[str, Any]]:
    return [{"id": number, "at": value} for number, value in enumerate(values)]


def flat(pages: Any) -> list[dict[str, Any]]:
    return [record for page in pages for record in page]


def ids(pages: Any) -> list[int]:
    return [record["id"] for record in flat(pages)]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([{"id": 1}], "record 1 has no 'at'"),
        ([*rows(1), {}], "record 2 has no 'at'"),
        (["text"], "record 1 has no 'at'"),
        (rows(1, "a"), "record 2: 'at' cannot be compared"),
        (rows("2026-11-20", "soon"), "record 2: 'at' cannot be compared"),
        (rows(1.0, float("nan")), "record 2: 'at' cannot be compared"),
    ],
)
def test_what_has_no_place_in_the_order(records: list[Any], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        list(request_then_emit(records, "at"))


def test_a_number_of_records_that_cannot_be() -> None:
    with pytest.raises(TapError, match="in_memory"):
        request_then_emit([], "at", in_memory=0)


def test_all_are_taken_and_given_in_order() -> None:
    assert ids(request_then_emit(rows(3, 1, None, 2, 1), "at")) == [2, 1, 4, 3, 0]
    assert ids(request_then_emit([rows(3, 1), [{"id": 9, "at": 2}]], "at")) == [1, 9, 0]
    assert list(request_then_emit([], "at")) == []


def test_times_of_different_offsets_come_in_their_order() -> None:
    values = rows("2026-11-20T01:00:00+02:00", "2026-11-20T00:00:00Z", "2026-11-19T18:30:00-05:00")
    assert ids(request_then_emit(values, "at")) == [0, 2, 1]


@given(st.lists(st.one_of(st.none(), st.integers(-50, 50)), max_size=120), st.integers(1, 50))
def test_what_does_not_fit_into_memory_comes_out_the_same(values: list[int | None], in_memory: int) -> None:
    wanted = sorted(rows(*values), key=lambda row: (row["at"] is not None, row["at"] or 0))
    assert flat(request_then_emit(rows(*values), "at", in_memory=in_memory)) == wanted


def test_values_on_disk_are_those_that_a_record_writes() -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    records = [{"at": at - timedelta(days=number), "price": Decimal("1.10"), "raw": b"\0"} for number in range(2)]
    assert flat(request_then_emit(records, "at", in_memory=1)) == [
        {"at": "2025-12-31T00:00:00Z", "price": Decimal("1.10"), "raw": "AA=="},
        {"at": "2026-01-01T00:00:00Z", "price": Decimal("1.10"), "raw": "AA=="},
    ]


def test_a_value_without_a_form_in_json_cannot_be_sorted_on_disk() -> None:
    with pytest.raises(SourceError, match="a record cannot be stored to be sorted"):
        list(request_then_emit([{"at": 1}, {"at": 2, "value": object()}], "at", in_memory=1))


@pytest.mark.parametrize("in_memory", [3, 100])
def test_numbers_of_several_types_are_sorted_by_their_values(in_memory: int) -> None:
    values: list[Any] = [Decimal("2.5"), 10**30, -1, 2, 0.1, Decimal("0.01"), None, -1.5]
    wanted = [None, -1.5, -1, Decimal("0.01"), 0.1, 2, Decimal("2.5"), 10**30]
    found = [record["at"] for record in flat(request_then_emit(rows(*values), "at", in_memory=in_memory))]
    assert [value if value is None else float(value) for value in found] == [
        value if value is None else float(value) for value in wanted
    ]


def test_the_records_in_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Record(dict[str, Any]):
        living = 0

        def __init__(self, number: int) -> None:
            super().__init__(at=-number)
            Record.living += 1

        def __del__(self) -> None:
            Record.living -= 1

    most = 0

    def source() -> Any:
        nonlocal most
        for number in range(2000):
            yield Record(number)
            most = max(most, Record.living)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = request_then_emit(source(), "at", in_memory=100)
    assert next(found)[0] == {"at": -1999}
    assert most <= 102
    assert list(tmp_path.iterdir()) == []  # the files have no names
    found.close()  # type: ignore[attr-defined]  # and are closed, which ResourceWarning would tell
    gc.collect()


def test_a_disk_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(SourceError, match=r"cannot be stored in .*none to be sorted: No such file"):
        list(request_then_emit(rows(1, 2), "at", in_memory=1))
