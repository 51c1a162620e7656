"""Queries of monitors on a schedule."""

from pathlib import Path
from typing import Any

from balog.errors import BalogError
from balog.watch.queries import QuerySchedule
from balog.watch.store_sqlite import SqliteWatchStore
from balog.watch.watcher import Watcher
from tests.watch.events import monitor
from tests.watch.test_watcher import Clock, Target


def test_each_row_is_a_series_and_one_without_a_row_is_good(tmp_path: Path) -> None:
    often = monitor(name="often", sql="SELECT 1 AS value", threshold={"over": 3, "every": "10m"})
    answers: list[Any] = [
        [{"pipeline": "tap-a", "value": 5}, {"pipeline": "tap-b", "value": 2}],
        BalogError("no such table"),
        [{"pipeline": "tap-a", "value": "many"}],
        [{"pipeline": "tap-b", "value": 4}],
    ]
    target, said, passed = Target(), list[str](), [0.0]
    watcher = Watcher([often], SqliteWatchStore(tmp_path / "w.sqlite"), target, Clock(1))

    def ask(sql: str) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, BalogError):
            raise answer
        return answer

    schedule = QuerySchedule(watcher, ask, said.append, watcher.now, lambda: passed[0])
    watcher.tick()
    for seconds in (1.0, 300.0, 601.0, 1202.0, 1803.0):
        passed[0] = seconds
        schedule.step()
    assert [(alert["labels"]["pipeline"], alert["state"], alert["value"]) for alert in target.alerts()] == [
        ("tap-a", "firing", 5.0),
        ("tap-b", "firing", 4.0),
        ("tap-a", "resolved", None),
    ]
    assert said == [
        "monitor often: the query failed: no such table",
        "monitor often: the query failed: its rows need a number in a column called value",
    ]
    assert not answers
