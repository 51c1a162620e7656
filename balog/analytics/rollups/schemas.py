"""The columns of rollups, as Spark types: made without a session, as workers must.

Every hour is one of UTC, and every moment an instant. Texts that are keys are cut to ``LONGEST_KEY`` characters.
"""

from __future__ import annotations

from pyspark.sql import types as t

from balog.analytics.reading.schemas import QUARANTINE as BAD_LINE

__all__ = [
    "COPIES",
    "ERRORS",
    "EVENTS",
    "EXAMPLE",
    "IDS",
    "LONGEST_KEY",
    "METRICS",
    "QUARANTINE",
    "ROLLUP",
    "RUN",
    "RUNS",
]

LONGEST_KEY = 1000
"""Characters of a key (a channel, an application, a run's id, a metric's name, a tag's value) that are kept."""

_STRING, _LONG, _DOUBLE, _TIMESTAMP = t.StringType(), t.LongType(), t.DoubleType(), t.TimestampType()


def _struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


RUN = _struct(
    at=_TIMESTAMP,
    outcome=_STRING,
    duration=_DOUBLE,
    exit_code=t.IntegerType(),
    records=_LONG,
    bytes=_LONG,
    signal=_STRING,
    problem=_STRING,
    streams=t.ArrayType(_struct(stream=_STRING, records=_LONG, bytes=_LONG)),
)
"""A run's own report, written ``at``: ``duration`` in seconds; ``bytes`` of the child's stdout; ``streams`` in
    order."""

EXAMPLE = _struct(timestamp=_TIMESTAMP, id=_STRING, run_id=_STRING, message=_STRING)
"""The first event of a kind of error, with the first 300 characters of what it says."""

EVENTS = _struct(
    hour=_TIMESTAMP,
    channel=_STRING,
    level=_STRING,
    cls_type=_STRING,
    application=_STRING,
    events=_LONG,
    first=_TIMESTAMP,
    last=_TIMESTAMP,
)
"""``rollup_events``: how many, and the earliest and the latest one's time; ``level`` is null in facility 0.0.1."""

METRICS = _struct(
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
"""``rollup_metrics``: the finite values of a metric with these tags, counted, summed, the least, the greatest.

``type`` is ``counter`` (deltas), ``timer`` (seconds), ``gauge`` (levels), ``value`` for a value of a ``metrics``
payload, or what the payload says. ``stream``, ``endpoint`` and ``stage`` are tags; ``status`` is the tag
``http_status_code``, else ``status``. ``sketch`` is a KLL sketch of the values (see ``rollups.sketches``), null for
counters.
"""

ERRORS = _struct(
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

RUNS = _struct(
    hour=_TIMESTAMP,
    run_id=_STRING,
    application=_STRING,
    first=_TIMESTAMP,
    last=_TIMESTAMP,
    events=_LONG,
    errors=_LONG,
    run=RUN,
)
"""``rollup_runs``: what one application did for one run in that hour; ``errors`` are events of level ERROR, CRITICAL.

``run`` is the report that it wrote in that hour, the latest if several, else null.
"""

QUARANTINE = _struct(reason=_STRING, lines=_LONG, file=_STRING, offset=_LONG)
"""Lines that are not events, by what is wrong with them; the first begins at byte ``offset`` of ``file``."""

COPIES, IDS = "copies", "ids"
"""Kinds of rows that are not stored: ``copies`` has in ``count`` how many events were left out, since another one has
their id. ``ids`` has in ``sketch`` the 64-bit hashes of ids, those of the same highest bits (``count``) in one row."""

ROLLUP = t.StructType(
    [
        t.StructField("kind", _STRING),
        *{field.name: field for part in (EVENTS, METRICS, ERRORS, RUNS) for field in part}.values(),
        t.StructField("quarantine", BAD_LINE),
    ]
)
"""What workers make: the four tables' columns side by side, and a ``kind`` that says which of them a row is for.

``kind`` is ``events``, ``metric``, ``error``, ``run``, or null for a bad line, which has all but ``quarantine`` null.
``copies`` and ``ids`` are not stored.
Every event is in one row of ``events``, and besides in one of each other kind that it belongs to.
"""
