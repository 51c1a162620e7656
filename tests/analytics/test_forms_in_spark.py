"""A folder of dumps in every form, read by one load."""

import gzip
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
    (tmp_path / "dumps/e.jsonl.gz").write_bytes(gzip.compress(json.dumps(make(channel="gzip")).encode() + b"\n"))
    return tmp_path / "dumps"


EXPECTED = {"plain": 1, "old": 1, "log": 1, "tap-x": 2, "sqs": 2, "gzip": 1, None: 1}


def test_one_load_reads_them_all_and_a_rollup_counts_them(spark: Any, dumps: Path) -> None:
    rows = spark.read.format("balog").schema("channel string, timestamp timestamp").load(str(dumps)).collect()
    assert Counter(row.channel for row in rows) == EXPECTED
    counted: Counter[str | None] = Counter()
    for row in spark.read.format("balog").option("rollup", True).load(str(dumps)).collect():
        counted[row.channel] += row.events if row.kind == "events" else bool(row.quarantine)
    assert +counted == EXPECTED
