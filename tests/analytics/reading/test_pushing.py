import operator
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

from pyspark.sql import types as t
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from balog.analytics.reading.files import Slice
from balog.analytics.reading.projection import project
from balog.analytics.reading.pushing import is_of_type, push
from balog.analytics.reading.scan import EventQuery, scan
from balog.analytics.reading.schemas import DEFAULT

COLUMNS = DEFAULT.fieldNames()
NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def rows(path: Path, filters: list[Filter], *names: str) -> list[dict[str, Any]]:
    kinds = {field.name: field.dataType for field in DEFAULT} | {"payload": t.StringType()}
    schema = t.StructType([t.StructField(name, kinds[name]) for name in names or COLUMNS])
    pushed = push(filters, schema.fieldNames())
    assert not pushed.left
    query = EventQuery(project(schema, pushed.where))
    return [row for batch in scan([Slice(str(path))], query) for row in batch.to_pylist()]


TEXTS = {
    "channel": st.sampled_from(["a", "b.c", "B", "é", "", "it's", '"id" ', "{}", "zz"]),
    "level": st.sampled_from(["DEBUG", "INFO", "WARNING", "ERROR", "INF", "x"]),
    "cls_type": st.sampled_from(["log", "metric", "", "LOG"]),
}
MOMENTS = st.integers(-3, 3).map(lambda hours: NOON + timedelta(hours=hours, microseconds=hours))
SIGNS: dict[type[Any], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    name = draw(st.sampled_from([*TEXTS, "timestamp"]))
    values = TEXTS.get(name, MOMENTS)
    kind = draw(st.sampled_from([*SIGNS, In, IsNotNull, Not]))
    if kind is IsNotNull:
        return IsNotNull((name,))
    if kind is In:
        return In((name,), tuple(draw(st.lists(values, min_size=1, max_size=3))))
    if kind is Not:
        several = draw(st.lists(values, min_size=1, max_size=3))
        return Not(draw(st.sampled_from([EqualTo((name,), several[0]), In((name,), tuple(several))])))
    return kind((name,), draw(values))  # type: ignore[no-any-return]


def holds(one: Filter, row: dict[str, Any]) -> bool:
    """Ask a filter as SQL does: null is not true, nor is its negation."""
    if isinstance(one, Not):
        return row[one.child.attribute[0]] is not None and not holds(one.child, row)  # type: ignore[attr-defined]
    value = row[one.attribute[0]]  # type: ignore[attr-defined]
    if value is None:
        return False
    if isinstance(one, IsNotNull):
        return True
    if isinstance(one, In):
        return value in one.value
    return SIGNS[type(one)](value, one.value)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events of several channels, levels, types and hours, one without a type, one without a level, and bad lines."""
    import json

    documents = []
    for number in range(60):
        header = {
            "id": f"LG{number:022d}",
            "channel": ["a", "b.c", "B", "é", "it's", '"id" ', "{}"][number % 7],
            "timestamp": (NOON + timedelta(hours=number % 7 - 3, microseconds=number % 5)).isoformat(),
            "level": ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"][number % 5],
        }
        payload = {"cls_type": ["log", "metric", "run"][number % 3], "n": number} if number % 11 else {"n": number}
        documents.append({"schema": "1.0.0", "header": header, "payload": payload})
    old = {**documents[1], "schema": "0.0.1", "header": {**documents[1]["header"], "id": "LGold"}}
    del old["header"]["level"]
    lines = [json.dumps(document) for document in [*documents, old]]
    root = tmp_path_factory.mktemp("pushed")
    (root / "good.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    (root / "mixed.jsonl").write_text("\n".join([*lines, "{broken", lines[0] * 2]) + "\n")
    return root


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(filters(), min_size=1, max_size=3), st.sampled_from(["good.jsonl", "mixed.jsonl"]))
def test_a_pushed_filter_gives_the_rows_that_it_holds_of(path: Path, asked: list[Filter], name: str) -> None:
    everything = rows(path / name, [])
    assert rows(path / name, asked) == [row for row in everything if all(holds(one, row) for one in asked)]


def test_rows_of_quarantine_meet_no_filter(path: Path) -> None:
    assert sum(row["quarantine"] is not None for row in rows(path / "mixed.jsonl", [])) == 2
    found = rows(path / "mixed.jsonl", [IsNull(("quarantine",))])
    assert [row["quarantine"] for row in found] == [None] * 61


def test_a_condition_may_be_about_a_column_that_is_not_handed_out(path: Path) -> None:
    schema = t.StructType([t.StructField("id", t.StringType())])
    query = EventQuery(project(schema, [is_of_type("metric")]))
    found = [row for batch in scan([Slice(str(path / "mixed.jsonl"))], query) for row in batch.to_pylist()]
    expected = [row["id"] for row in rows(path / "mixed.jsonl", []) if row["cls_type"] == "metric"]
    assert [row["id"] for row in found] == expected
    assert len(expected) > 10


@pytest.mark.parametrize(
    "one",
    [
        EqualTo(("id",), "LG1"),
        EqualTo(("nothing",), "x"),
        EqualTo(("payload", "channel"), "x"),
        EqualTo(("channel",), 5),
        EqualTo(("channel",), None),
        EqualTo(("channel",), "a\0b"),
        EqualTo(("timestamp",), "2026-11-20"),
        EqualTo(("timestamp",), datetime(2026, 11, 20)),
        In(("level",), ()),
        In(("level",), (None,)),
        In(("level",), tuple(map(str, range(2000)))),
        Not(In(("level",), ("INFO", None))),
        Not(GreaterThan(("channel",), "a")),
        Not(EqualNullSafe(("channel",), "a")),
        Not(IsNotNull(("channel",))),
        Not(IsNull(("quarantine",))),
        IsNull(("channel",)),
        StringStartsWith(("channel",), "a"),
    ],
)
def test_what_is_not_certain_to_mean_the_same_is_left_to_spark(one: Filter) -> None:
    pushed = push([one], COLUMNS)
    assert pushed.left == (one,)
    assert (pushed.where, pushed.since, pushed.until) == ((), None, None)


def test_bounds_of_time_are_told_for_whole_files() -> None:
    later = NOON + timedelta(days=1)
    moment = timedelta(microseconds=1)
    between = [GreaterThanOrEqual(("timestamp",), NOON), LessThan(("timestamp",), later)]
    assert push(between, COLUMNS)[1:3] == (NOON, later + moment)
    assert push([EqualTo(("timestamp",), NOON)], COLUMNS)[1:3] == (NOON, NOON + moment)
    assert push([In(("timestamp",), (later, NOON, None))], COLUMNS)[1:3] == (NOON, later + moment)
    assert push([Not(EqualTo(("timestamp",), NOON)), IsNotNull(("timestamp",))], COLUMNS)[1:3] == (None, None)
    assert push([EqualTo(("channel",), "a")], COLUMNS)[1:3] == (None, None)
