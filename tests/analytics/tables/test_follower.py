"""Loads that go on, over a growing folder, in this process."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from balog.analytics.reading.spark_types import TEXT_EVENT
from balog.analytics.tables import open_store
from balog.analytics.tables.follower import _OverError, _Stream, follow
from balog.analytics.tables.loader import LoadOptions
from tests.waiting import wait_for

pytestmark = pytest.mark.spark


class Following:
    """Follows a folder in a thread until it is told to stop."""

    def __init__(self, spark: Any, place: Path, source: Path) -> None:
        self._stop = threading.Event()
        self.summary: Any = None
        self.error: Exception | None = None

        def run() -> None:
            try:
                store = open_store(spark, str(place))
                with store.writing():
                    every = timedelta(seconds=0.1)
                    self.summary = follow(spark, store, [str(source)], LoadOptions(), self._stop.is_set, every=every)
            except Exception as error:
                self.error = error

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def until(self, is_done: Callable[[], bool]) -> None:
        wait_for(lambda: is_done() or not self._thread.is_alive(), 120)
        assert self.error is None, self.error
        assert is_done()

    def stop(self) -> Any:
        self._stop.set()
        self._thread.join(120)
        assert self.error is None, self.error
        return self.summary


def count(place: Path, rows: Any) -> int:
    return len(rows(place, "events", "id")) if list(place.glob("events/*/*.parquet")) else 0


def test_what_comes_is_loaded_once_and_a_bad_line_stalls_nothing(
    spark: Any, place: Path, dump: Any, rows: Any, tmp_path: Path
) -> None:
    folder = dump("a.jsonl", *range(5), lines=("{ broken",)).parent
    following = Following(spark, place, folder)
    following.until(lambda: count(place, rows) == 5)
    dump("b.jsonl", *range(3, 9))
    following.until(lambda: count(place, rows) == 9)
    summary = following.stop()
    assert (summary.rows["events"], summary.duplicates, summary.rows["quarantine"]) == (9, 2, 1)
    dump("c.jsonl", *range(9, 12))
    again = Following(spark, place, folder)
    again.until(lambda: count(place, rows) == 12)
    assert again.stop().rows["events"] == 3
    [name] = [json.loads(path.read_text())["stream"][0] for path in (place / "_balog" / "log").glob("*3.json")]
    assert name.startswith("follow-")


def test_a_batch_that_spark_hands_over_again_is_passed_over(spark: Any, place: Path, dump: Any, rows: Any) -> None:
    frame = spark.read.format("balog").schema(TEXT_EVENT).load(str(dump("a.jsonl", *range(4))))
    store = open_store(spark, str(place))
    with store.writing():
        stream = _Stream(spark, store, ["x"], LoadOptions(), print, False)
        stream.take(frame, 0)
        stream.take(frame, 0)
        stream.over.set()
        with pytest.raises(_OverError):
            stream.take(frame, 1)
    assert len(rows(place, "events", "id")) == 4
    assert sum(row[0] for row in rows(place, "rollup_events", "events")) == 4
