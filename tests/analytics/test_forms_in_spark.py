"""A folder of dumps in every form, read by one load."""

import bz2
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture
def dumps(make: Any, write: Any, tmp_path: Path) -> Path:
    def message() -> dict[str, str]:
        return {"MessageId": "1", "Body": json.dumps(make(channel="sqs"))}

    write("dumps/date=2026-11-20/a.jsonl", make(channel="plain"), b"broken")
    write("dumps/date=2026-11-20/b.log", b'2026-11-20 07:46:12\told\t{"cls_type":"metrics","values":[]}')
    write(
        "dumps/date=2026-11-20/c.singer.gz",
        {"type": "STATE", "value": {}},
        {"type": "LOG", "value": make(channel="log")},
    )
    write("dumps/date=2026-11-20/tap-x.log", b"INFO hello", b"ERROR failed", b"  because")
    (tmp_path / "dumps/d.json").write_text(json.dumps({"Messages": [message(), message()]}, indent=4))
    (tmp_path / "dumps/e.jsonl.bz2").write_bytes(bz2.compress(json.dumps(make(channel="bz2")).encode() + b"\n"))
    return tmp_path / "dumps"


EXPECTED = {"plain": 1, "old": 1, "log": 1, "tap-x": 2, "sqs": 2, "bz2": 1, None: 1}


def test_one_load_reads_them_all(spark: Any, dumps: Path) -> None:
    rows = spark.read.format("balog").schema("channel string, timestamp timestamp").load(str(dumps)).collect()
    assert Counter(row.channel for row in rows) == EXPECTED


def test_a_rollup_counts_them_all(spark: Any, dumps: Path) -> None:
    rows = spark.read.format("balog").option("rollup", True).load(str(dumps)).collect()
    counted: Counter[str | None] = Counter()
    for row in rows:
        counted[row.channel] += row.events if row.kind == "events" else 0
    assert {channel: count for channel, count in counted.items() if channel} == {
        channel: count for channel, count in EXPECTED.items() if channel
    }
    assert len([row for row in rows if row.quarantine]) == 1


def test_form_zone_and_application_are_options(spark: Any, write: Any) -> None:
    path = write("x", b"2026-07-20 08:18:50,473 | INFO     | l | m")
    options = {"form": "stderr", "timezone": "Europe/Berlin", "application": "tap-y"}
    frame = spark.read.format("balog").options(**options).load(str(path))
    (row,) = frame.selectExpr(
        "channel", "context['application'] AS application", "unix_millis(timestamp) AS at"
    ).collect()
    assert tuple(row) == ("tap-y.l", "tap-y", 1784528330473)


def test_a_form_that_there_is_not_is_refused(spark: Any, dumps: Path) -> None:
    with pytest.raises(Exception, match="no form 'xml'; there are auto, events, sqs, old, singer, stderr"):
        spark.read.format("balog").option("form", "xml").load(str(dumps)).collect()
