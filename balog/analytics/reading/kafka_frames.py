"""Events from frames of Spark's own Kafka connector, for clusters that have its jar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from balog.analytics.reading.spark_types import TEXT_EVENT, project_spark
from balog.errors import ConfigError


def from_kafka(records: DataFrame, schema: StructType = TEXT_EVENT) -> DataFrame:
    """Return the events in the records of ``spark.readStream.format("kafka")``, or of ``spark.read``.

    Args:
        records: with ``value binary``, ``topic string``, ``partition int`` and ``offset bigint``, as the connector
            returns them; other columns are ignored.
        schema: the columns to return, as for ``spark.read.format("balog")``.

    Returns:
        ``id``, ``channel``, ``timestamp``, ``level``, ``schema``, ``composition``, ``context map<string,string>``,
        ``cls_type``, ``payload_json string`` and ``quarantine struct<file, offset, reason, raw>``, where ``file`` is
        ``kafka:#TOPIC/PARTITION`` and ``offset`` the record's. Records without a value are skipped.

    Raises:
        ConfigError: ``records`` lacks a column, or ``schema`` has an unknown one.
    """
    wanted = ["value", "topic", "partition", "offset"]
    missing = [name for name in wanted if name not in records.columns]
    if missing:
        raise ConfigError(f"no column {', '.join(missing)}; give the frame as the connector does", "from_kafka")
    project_spark(schema)
    return records.select(*wanted).mapInArrow(partial(_events, schema), schema)


def _events(schema: StructType, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from balog.analytics.reading.forms.converter import EventLines
    from balog.analytics.reading.scan import EventQuery, scan_messages

    query = EventQuery(project_spark(schema))
    for batch in batches:
        found: dict[str, EventLines] = {}
        for value, topic, partition, offset in zip(*(column.to_pylist() for column in batch.columns)):
            body = value.encode() if isinstance(value, str) else value
            if body and body.strip():
                lines = found.setdefault(f"kafka:#{topic}/{partition}", EventLines())
                lines.add(body.replace(b"\n", b" "), offset, body)
        for path, lines in found.items():
            yield from scan_messages(lines, path, query)
