"""Records of Spark's Kafka connector as events."""

import json
from typing import Any

import pytest

from balog.analytics.reading.kafka_frames import from_kafka
from balog.errors import ConfigError

pytestmark = pytest.mark.spark


def test_records_become_events_and_what_is_none_is_told_by_its_offset(spark: Any, make: Any) -> None:
    documents = [make(level="ERROR"), make({"cls_type": "metric", "value": 1})]
    values = [json.dumps(one, indent=1).encode() for one in documents]
    rows = [(values[0], "t", 0, 7), (b"broken", "t", 1, 8), (None, "t", 1, 9), (values[1], "u", 0, 0)]
    records = spark.createDataFrame(rows, "value binary, topic string, partition int, offset bigint").coalesce(1)
    found = from_kafka(records)
    assert found.columns[-3:] == ["cls_type", "payload_json", "quarantine"]
    got = found.collect()
    events = {row.id: row for row in got if not row.quarantine}
    assert list(events) == [one["header"]["id"] for one in documents]
    assert json.loads(events[documents[1]["header"]["id"]].payload_json) == documents[1]["payload"]
    (bad,) = [row.quarantine for row in got if row.quarantine]
    assert (bad.file, bad.offset, bad.raw) == ("kafka:#t/1", 8, "broken")
    with pytest.raises(ConfigError, match="no column offset"):
        from_kafka(records.drop("offset"))
