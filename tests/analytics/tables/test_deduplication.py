"""Where copies of a batch's events are looked for."""

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics.tables.deduplication import WINDOW, is_within, spans
from balog.analytics.tables.store import StagedFile

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def file(first: datetime, last: datetime) -> StagedFile:
    return StagedFile("x", date.min, 1, 1, first, last)


def test_files_near_each_other_are_one_span_and_a_far_one_is_another() -> None:
    year = timedelta(days=365)
    files = [file(NOON + WINDOW, NOON + 2 * WINDOW), file(NOON - year, NOON - year), file(NOON, NOON)]
    assert spans(files) == [(NOON - year - WINDOW, NOON - year + WINDOW), (NOON - WINDOW, NOON + 3 * WINDOW)]


def test_a_batch_of_many_far_days_is_one_span() -> None:
    moments = [NOON + timedelta(days=number) for number in range(100)]
    assert spans([file(moment, moment) for moment in moments]) == [(moments[0] - WINDOW, moments[-1] + WINDOW)]


def test_time_has_ends() -> None:
    first, last = datetime.min.replace(tzinfo=timezone.utc), datetime.max.replace(tzinfo=timezone.utc)
    assert spans([file(first, first), file(last, last)]) == [(first, first + WINDOW), (last - WINDOW, last)]


@pytest.mark.spark
@pytest.mark.parametrize("day", ["0001-01-02", "1582-10-04", "1582-10-05", "1582-10-14", "1582-10-15", "2026-11-20"])
def test_an_event_is_found_within_its_hour_on_each_day_of_the_calendar(spark: Any, tmp_path: Path, day: str) -> None:
    """Spark moves the days that the Julian calendar does not have in what it passes to Parquet's reader."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    moment = datetime.fromisoformat(f"{day}T01:46:12+00:00")
    table = pa.table({"timestamp": pa.array([moment], pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "a.parquet")  # type: ignore[no-untyped-call]
    events = spark.read.parquet(str(tmp_path / "a.parquet"))
    assert events.where(is_within(moment - WINDOW, moment + WINDOW)).count() == 1
    assert events.where(is_within(moment + WINDOW, moment + 2 * WINDOW)).count() == 0
