"""The data source inside Spark."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f

from balog.analytics.reading.worker_errors import OneLineErrors
from balog.analytics.source import EventSource
from balog.common.errors import ConfigError, TopicError

pytestmark = pytest.mark.spark


@pytest.fixture
def archive(make: Any, write: Any, tmp_path: Path) -> Path:
    """Two days of one topic: two events in gzip; a plain event and a bad line; and a file that is being written."""
    write(
        "root/t/date=2026-11-20/a.jsonl.gz",
        make({"cls_type": "metric", "type": "timer", "metric": "wait", "value": 1.5, "tags": {"stream": "s"}}),
        make({"cls_type": "log", "message": "done"}, level="ERROR"),
    )
    write("root/t/date=2026-11-21/b.jsonl", make({"x": [1, {"y": None}]}), b"not an event")
    write("root/t/date=2026-11-21/.c.jsonl.gz.part", make())
    return tmp_path / "root"


def test_load_gives_exactly_the_documented_columns(spark: Any, archive: Path) -> None:
    frame = spark.read.format("balog").load(str(archive))
    assert frame.schema.simpleString() == (
        "struct<id:string,channel:string,timestamp:timestamp,level:string,schema:string,composition:boolean,"
        "context:map<string,string>,cls_type:string,payload:variant,"
        "quarantine:struct<file:string,offset:bigint,reason:string,raw:string>>"
    )
    assert frame.count() == 4


def test_the_payload_is_a_variant_that_sql_can_ask(spark: Any, archive: Path) -> None:
    frame = spark.read.format("balog").load(str(archive)).where("quarantine is null")
    rows = frame.selectExpr(
        "variant_get(payload, '$.metric', 'string') AS metric",
        "try_variant_get(payload, '$.value', 'double') AS value",
        "try_variant_get(payload, '$.metric', 'int') AS wrong",
        "to_json(payload) AS text",
        "context['run_id'] AS run_id",
    ).collect()
    assert sorted((row.metric, row.value) for row in rows if row.metric) == [("wait", 1.5)]
    assert {row.wrong for row in rows} == {None}
    assert {row.run_id for row in rows} == {"r1"}
    assert {"x": [1, {"y": None}]} in [json.loads(row.text) for row in rows]


def test_a_variant_means_what_sparks_own_parse_json_means(spark: Any, make: Any, write: Any) -> None:
    payloads = [
        {f"k{n}": n for n in range(300)},
        {"a": -1, "b": 2**40, "c": [True, None, "é" * 100], "d": {"e": 1.25, "": {}}, "big": 10**25},
    ]
    path = write("a.jsonl", *map(make, payloads))
    both = spark.read.format("balog").schema("payload variant, payload_json string").load(str(path))
    for row in both.selectExpr("to_json(payload) AS ours", "to_json(parse_json(payload_json)) AS sparks").collect():
        assert json.loads(row.ours) == json.loads(row.sparks)
    assert both.selectExpr("variant_get(payload, '$.k250', 'int') AS n").first().n == 250


def test_the_schema_asked_for_is_the_projection_in_its_order(spark: Any, archive: Path) -> None:
    quarantine = "struct<file string, offset bigint, reason string, raw string>"
    schema = f"quarantine {quarantine}, payload struct<value double>, id string"
    rows = spark.read.format("balog").schema(schema).load(str(archive)).collect()
    assert rows[0].__fields__ == ["quarantine", "payload", "id"]
    assert sorted(row.payload.value for row in rows if row.payload and row.payload.value) == [1.5]
    (bad,) = [row for row in rows if row.quarantine]
    assert (bad.id, bad.payload, bad.quarantine.raw) == (None, None, "not an event")
    assert bad.quarantine.file.endswith("b.jsonl")


def test_an_empty_folder_is_an_empty_frame(spark: Any, tmp_path: Path) -> None:
    assert spark.read.format("balog").load(str(tmp_path)).collect() == []


def test_errors_of_the_source_reach_a_notebook_as_one_line_and_all_others_keep_their_traceback(
    spark: Any, tmp_path: Path, archive: Path
) -> None:
    def users(number: int) -> int:
        raise ValueError("in the user's own function")

    @OneLineErrors()
    def unreachable(number: int) -> int:
        raise TopicError("the broker is down")

    def mistake(message: str, run: Any) -> list[str]:
        with pytest.raises(Exception, match=re.escape(message)) as caught:
            run()
        return str(caught.value).splitlines()

    def reader() -> Any:
        return spark.read.format("balog")

    missing = mistake("no such file or folder", lambda: reader().load(str(tmp_path / "missing")).count())
    option = mistake("no option 'froma'", lambda: reader().option("froma", "1").load(str(archive)).count())
    column = mistake("no column nothing", lambda: reader().schema("nothing string").load(str(archive)).count())
    assert [line for line in missing if line.strip() and "SQLSTATE" not in line] == [
        "[PYTHON_DATA_SOURCE_ERROR] Failed to generate Python data source read partitions: "
        f"balog.common.errors.ConfigError: {tmp_path / 'missing'}: no such file or folder; give an archive's folder, a "
        ".jsonl or .jsonl.gz file, or a glob"
    ]
    for lines in (missing, option, column):
        assert not [line for line in lines if "Traceback" in line or "File " in line]
    one = spark.range(1)
    lines = mistake("TopicError: the broker is down", one.select(f.udf(unreachable, "int")("id")).collect)
    assert not [line for line in lines if "Traceback" in line]
    for _ in range(2):  # workers are used again, and none of them remembers
        lines = mistake("in the user's own function", one.select(f.udf(users, "int")("id")).collect)
        assert [line for line in lines if "Traceback" in line]
        assert [line for line in lines if "in users" in line]
    assert spark.read.format("balog").load(str(archive)).count() == 4


def test_a_process_that_is_no_worker_of_spark_keeps_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)
    with pytest.raises(ConfigError, match="no option 'froma'"):
        EventSource({"path": "x", "froma": "1"})
    assert "SPARK_HIDE_TRACEBACK" not in os.environ


def test_a_session_says_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "from balog.analytics import session; s = session(); print(s.conf.get('spark.sql.session.timeZone')); s.stop()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (done.stdout, done.stderr) == ("UTC\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("froma", "no option 'froma'; did you mean 'form'?"),
        ("sinse", "no option 'sinse'; did you mean 'since'?"),
        ("maxbytespertriger", "did you mean 'maxBytesPerTrigger'?"),
        ("zzz", "no option 'zzz'; there are path, paths, since"),
    ],
)
def test_an_option_that_does_not_exist_is_refused_with_the_nearest(option: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        EventSource({"path": "x", option: "1"})


def test_options_are_known_in_any_case(spark: Any, archive: Path) -> None:
    with pytest.raises(Exception, match="did you mean 'form'"):
        spark.read.format("balog").option("froma", "events").load(str(archive))
    reader = spark.read.format("balog").option("FORM", "events").option("maxbytespertrigger", 1)
    assert reader.load(str(archive)).count() == 4
