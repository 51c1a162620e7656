"""Spark as an engine: parameters, frames, and what an answer says of itself."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from balog.analytics.engine import micros

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: Any) -> Any:
    from balog.analytics.spark_engine import SparkEngine

    return SparkEngine(spark)


def test_a_parameter_is_a_value_and_never_text_of_the_statement(engine: Any) -> None:
    hostile = "' OR 1 = 1 -- {events} :b"
    assert engine.sql("SELECT :a AS a, :b AS b", {"a": hostile, "b": None}).rows() == [{"a": hostile, "b": None}]


def test_a_frame_is_read_by_its_name_in_braces_even_twice(engine: Any, spark: Any) -> None:
    rows = "SELECT count(*) AS n FROM {events} x JOIN {events} y ON x.id = y.id"
    assert engine.sql(rows, events=spark.range(7)).rows() == [{"n": 7}]


def test_an_answer_is_a_frame_for_the_next_question(engine: Any, spark: Any) -> None:
    first = engine.sql("SELECT id FROM {events} WHERE id < :most", {"most": 3}, events=spark.range(9))
    assert engine.sql("SELECT sum(id) AS n FROM {found}", found=first.frame).rows() == [{"n": 3}]


@pytest.mark.parametrize("year", [1, 1500, 1969, 2026, 9999])
def test_times_pass_both_ways_in_utc_whatever_the_zone_of_the_session(engine: Any, spark: Any, year: int) -> None:
    moment = datetime(year, 3, 1, 5, 6, 7, 123456, tzinfo=timezone.utc)
    from balog.analytics.spark_engine import spark_settings

    with spark_settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        text = "SELECT timestamp_micros(:at) AS at, struct(timestamp_micros(:at) AS inner) AS nested"
        (row,) = engine.sql(text, {"at": micros(moment)}).rows()
    assert row == {"at": moment, "nested": {"inner": moment}}
    assert row["at"].utcoffset() == timedelta(0)


def test_columns_and_types_are_named_as_spark_names_them(engine: Any) -> None:
    answer = engine.sql("SELECT 1L AS a, array('x') AS b, struct(2D AS d) AS c")
    assert (answer.columns, answer.types) == (["a", "b", "c"], ["bigint", "array<string>", "struct<d:double>"])


class SlowSession:
    """A session with a parser of an extension; it looks at its settings while a statement is analysed."""

    def __init__(self) -> None:
        self.settings = {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}
        self.conf = self
        self.seen: list[str | None] = []

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def unset(self, name: str) -> None:
        self.settings.pop(name, None)

    def sql(self, text: str, parameters: dict[str, Any]) -> str:
        time.sleep(0.001)
        self.seen.append(self.settings.get("spark.sql.legacy.parameterSubstitution.constantsOnly"))
        return text


def test_parameters_are_bound_after_an_extension_s_parser_also_by_several_threads() -> None:
    from balog.analytics.spark_engine import SparkEngine

    session = SlowSession()
    engine = SparkEngine(session)  # type: ignore[arg-type]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: engine.sql("SELECT :a", {"a": number}), range(40)))
    assert session.seen == ["true"] * 40
    assert list(session.settings) == ["spark.sql.extensions"]
