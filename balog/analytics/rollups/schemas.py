"""The columns of rollups, as Spark types. Workers need them, so no session is needed.

Hours are in UTC. Texts that are keys are truncated to ``LONGEST_KEY`` characters.
"""

from __future__ import annotations

from pyspark.sql import types as t

from balog.analytics.reading.schemas import QUARANTINE as BAD_LINE
from balog.analytics.reading.schemas import struct

LONGEST_KEY = 1000
"""Characters of a key: a channel, an application, a run's id, a metric's name, a tag's value."""

_STRING, _LONG, _DOUBLE, _TIMESTAMP = t.StringType(), t.LongType(), t.DoubleType(), t.TimestampType()


RUN = struct(
    at=_TIMESTAMP,
    outcome=_STRING,
    duration=_DOUBLE,
    exit_code=t.IntegerType(),
    records=_LONG,
    bytes=_LONG,
    signal=_STRING,
    problem=_STRING,
    streams=t.ArrayType(struct(stream=_STRING, records=_LONG, bytes=_LONG)),
)
"""A run's own report, written ``at``: ``duration`` in seconds, ``bytes`` of stdout, ``streams`` in order."""

EXAMPLE = struct(timestamp=_TIMESTAMP, id=_STRING, run_id=_STRING, message=_STRING)
"""The first event of a failure, with the first 300 characters of its message."""

EVENTS = struct(
    hour=_TIMESTAMP,
    channel=_STRING,
    level=_STRING,
    cls_type=_STRING,
    application=_STRING,
    events=_LONG,
    first=_TIMESTAMP,
    last=_TIMESTAMP,
)
"""``rollup_events``: the number of events, and the earliest and latest time; ``level`` is null in facility 0.0.1."""

METRICS = struct(
    hour=_TIMESTAMP,
    channel=_STRING,
    application=_STRING,
    metric=_STRING,
    type=_STRING,
    stream=_STRING,
    endpoint=_STRING,
    status=_STRING,
    stage=_STRING,
    count=_LONG,
    sum=_DOUBLE,
    low=_DOUBLE,
    high=_DOUBLE,
    sketch=t.BinaryType(),
)
"""``rollup_metrics``: count, sum, minimum and maximum of the finite values of a metric with these tags.

``type`` is ``counter`` (deltas), ``timer`` (seconds), ``gauge`` (levels), ``value`` for a value of a ``metrics``
payload, or the payload's own. ``stream``, ``endpoint`` and ``stage`` are tags; ``status`` is the tag
``http_status_code``, otherwise ``status``. ``sketch`` is a KLL sketch of the values (see ``rollups.sketches``), null
for counters.
"""

ERRORS = struct(
    hour=_TIMESTAMP,
    fingerprint=_STRING,
    channel=_STRING,
    application=_STRING,
    level=_STRING,
    error_type=_STRING,
    message=_STRING,
    events=_LONG,
    first=_TIMESTAMP,
    last=_TIMESTAMP,
    example=EXAMPLE,
)
"""``rollup_errors``: the errors of one fingerprint, see ``rollups.fingerprints``.

``message`` is masked, ``example`` is not.
"""

RUNS = struct(
    hour=_TIMESTAMP,
    run_id=_STRING,
    application=_STRING,
    first=_TIMESTAMP,
    last=_TIMESTAMP,
    events=_LONG,
    errors=_LONG,
    run=RUN,
)
"""``rollup_runs``: an application's events of a run in that hour; ``errors`` are those of level ERROR and CRITICAL.

``run`` is the latest report of that hour, or null.
"""

QUARANTINE = struct(reason=_STRING, lines=_LONG, file=_STRING, offset=_LONG)
"""Invalid lines by reason; the first one is at byte ``offset`` of ``file``."""

COPIES, IDS = "copies", "ids"
"""Kinds of rows that are not stored.

``copies`` has in ``count`` the number of events that were dropped as duplicates. ``ids`` has in ``sketch`` the 64-bit
hashes of ids, in one row for each value of their highest bits (``count``).
"""

ROLLUP = t.StructType(
    [
        t.StructField("kind", _STRING),
        *{field.name: field for part in (EVENTS, METRICS, ERRORS, RUNS) for field in part}.values(),
        t.StructField("quarantine", BAD_LINE),
    ]
)
"""The rows that workers produce: the columns of the four tables side by side, and a ``kind``.

``kind`` is ``events``, ``metric``, ``error``, ``run``, or null for an invalid line, of which all columns except
``quarantine`` are null. ``copies`` and ``ids`` are not stored. Every event is in one row of ``events``, and in one of
each other kind that it belongs to.
"""
