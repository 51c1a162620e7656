"""Filters and payload types as Spark asks the data source for them."""

import json
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture
def read(spark: Any, archive: Path) -> Any:
    """Reads the archive with filters pushed down, or not."""

    def read(pushdown: bool) -> Any:
        schema = "id string, channel string, timestamp timestamp, level string, cls_type string"
        return spark.read.format("balog").schema(schema).option("pushdown", pushdown).load(str(archive))

    return read


WHERES = [
    "level = 'ERROR' AND timestamp >= '2026-11-21'",
    "cls_type IN ('metric', 'run') AND channel LIKE 'tap%'",
    "level <> 'INFO' OR timestamp < '2026-11-21'",
]


@pytest.mark.parametrize("where", WHERES)
def test_a_filter_gives_the_same_rows_pushed_down_or_not(read: Any, where: str) -> None:
    found = [sorted(map(tuple, read(pushdown).where(where).collect())) for pushdown in (True, False)]
    assert found[0] == found[1]
    assert found[0]


def test_rows_that_are_filtered_out_do_not_leave_the_worker(read: Any) -> None:
    def scanned(pushdown: bool) -> int:
        frame = read(pushdown).where("level = 'ERROR' AND timestamp >= '2026-11-21'")
        frame.collect()
        executed = frame._jdf.queryExecution().executedPlan()
        nodes = executed.collectLeaves()
        metrics = nodes.head().metrics()
        return int(metrics.apply("numOutputRows").value())

    assert scanned(True) == 1
    assert scanned(False) == 6


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
