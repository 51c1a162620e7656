"""Filters and payload types of the data source."""

import json
from pathlib import Path
from typing import Any

import pytest

from balog.analytics.spark_engine import spark_settings

pytestmark = pytest.mark.spark


@pytest.fixture
def archive(make: Any, write: Any, tmp_path: Path) -> Path:
    """Two days with a metric, a log line and a bad line each."""
    for day in ("2026-11-20", "2026-11-21"):
        write(
            f"root/t/date={day}/a.jsonl",
            make(
                {"cls_type": "metric", "type": "timer", "metric": "wait", "value": "1.5", "tags": {"stream": "s"}},
                timestamp=f"{day}T10:00:00Z",
            ),
            make({"cls_type": "log", "message": "done"}, level="ERROR", timestamp=f"{day}T11:00:00Z"),
            b"not an event",
        )
    return tmp_path / "root"


def test_a_filter_of_one_question_is_not_asked_in_the_next(spark: Any, archive: Path) -> None:
    events = spark.read.format("balog").load(str(archive))
    assert [events.where("level = 'ERROR'").count(), events.count()] == [2, 6]
    errors, metrics = events.where("level = 'ERROR'"), events.where("cls_type = 'metric'")
    assert [errors.union(metrics).count(), errors.join(metrics, "channel").count(), events.count()] == [4, 4, 6]


def test_a_session_in_which_spark_offers_filters_to_sources_gets_the_same_answers(spark: Any, archive: Path) -> None:
    with spark_settings(spark, {"spark.sql.python.filterPushdown.enabled": "true"}):
        events = spark.read.format("balog").load(str(archive))
        assert [events.where("level = 'ERROR'").count(), events.count()] == [2, 6]


def test_a_payload_type_has_its_own_columns_and_no_other_events(spark: Any, archive: Path) -> None:
    frame = spark.read.format("balog").option("cls_type", "metric").load(str(archive))
    assert frame.schema["payload"].dataType.simpleString() == (
        "struct<cls_type:string,version:string,type:string,metric:string,value:double,tags:map<string,string>>"
    )
    assert "quarantine" not in frame.columns
    rows = frame.select("cls_type", "payload.metric", "payload.value", "payload.tags").collect()
    assert [tuple(row) for row in rows] == [("metric", "wait", 1.5, {"stream": "s"})] * 2


def test_a_payload_type_may_have_a_schema_of_ones_own_or_columns_of_the_readers(
    spark: Any, archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "log.json").write_text(json.dumps({"properties": {"message": {"type": "string"}}}))
    reader = spark.read.format("balog").option("cls_type", "log").option("schemas", str(tmp_path / "log.json"))
    assert {tuple(row) for row in reader.load(str(archive)).select("payload.*", "level").collect()} == {
        ("done", "ERROR")
    }
    assert spark.read.format("balog").option("cls_type", "log").schema("id string").load(str(archive)).count() == 2


def test_a_payload_type_that_nobody_knows_is_told_with_what_to_do(spark: Any, archive: Path) -> None:
    with pytest.raises(Exception, match="no schema of the payload type 'order'; name its file or folder"):
        spark.read.format("balog").option("cls_type", "order").load(str(archive))
    with pytest.raises(Exception, match="a rollup is of all types"):
        spark.read.format("balog").option("cls_type", "log").option("rollup", True).load(str(archive)).count()
