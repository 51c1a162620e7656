"""The columns of rollups, as Arrow types; ``frames`` has them as Spark types.

Hours are in UTC. Texts that are keys are truncated to ``LONGEST_KEY`` characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from balog.analytics.reading.schemas import QUARANTINE as BAD_LINE
from balog.analytics.reading.schemas import list_of, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LONGEST_KEY = 1000
"""Characters of a key: a channel, an application, a run's id, a metric's name, a tag's value."""


RUN = struct(
    "at timestamp, outcome string, duration double, exit_code int, records bigint, bytes bigint, signal string, "
    "problem string",
    streams=list_of(struct("stream string, records bigint, bytes bigint")),
)
"""A run's own report, written ``at``: ``duration`` in seconds, ``bytes`` of stdout, ``streams`` in order."""

EXAMPLE = struct("timestamp timestamp, id string, run_id string, message string")
"""The first event of a failure, with the first 300 characters of its message."""

EVENTS = struct(
    "hour timestamp, channel string, level string, cls_type string, application string, events bigint, "
    "first timestamp, last timestamp"
)
"""``rollup_events``: the number of events, and the earliest and latest time; ``level`` is null in facility 0.0.1."""

METRICS = struct(
    "hour timestamp, channel string, application string, metric string, type string, stream string, endpoint string, "
    "status string, stage string, run_id string, count bigint, sum double, low double, high double, sketch binary"
)
"""``rollup_metrics``: count, sum, minimum and maximum of the finite values of a metric with these tags.

``type`` is ``counter`` (deltas), ``timer`` (seconds), ``gauge`` (levels), ``value`` for a value of a ``metrics``
payload, or the payload's own. ``stream``, ``endpoint`` and ``stage`` are tags; ``status`` is the tag
``http_status_code``, otherwise ``status``. ``sketch`` is a KLL sketch of the values (see ``sketches``), null
for counters. ``run_id`` is only that of the counter ``record_count``: a run's records are counted once, see
``questions.runs.counting``.
"""

ERRORS = struct(
    "hour timestamp, fingerprint string, channel string, application string, level string, error_type string, "
    "message string, events bigint, first timestamp, last timestamp",
    example=EXAMPLE,
)
"""``rollup_errors``: the errors of one fingerprint, see ``balog.event.fingerprints``.

``message`` is masked, ``example`` is not.
"""

RUNS = struct(
    "hour timestamp, run_id string, application string, first timestamp, last timestamp, events bigint, errors bigint",
    run=RUN,
)
"""``rollup_runs``: an application's events of a run in that hour; ``errors`` are those of level ERROR and CRITICAL.

``run`` is the latest report of that hour, or null.
"""

QUARANTINE = struct("reason string, lines bigint, file string, offset bigint")
"""Invalid lines by reason; the first one is at byte ``offset`` of ``file``."""

FRAMES = {"events": EVENTS, "metrics": METRICS, "errors": ERRORS, "runs": RUNS, "quarantine": QUARANTINE}
"""The columns of each frame of ``Rollups``."""

COPIES, IDS = "copies", "ids"
"""Kinds of rows that are not stored.

``copies`` has in ``count`` the number of events that were dropped as duplicates. ``ids`` has in ``sketch`` the 64-bit
hashes of ids, in one row for each value of their highest bits (``count``).
"""

ROLLUP = pa.schema(
    [
        pa.field("kind", pa.string()),
        *{field.name: field for part in (EVENTS, METRICS, ERRORS, RUNS) for field in part}.values(),
        pa.field("quarantine", BAD_LINE),
    ]
)
"""The rows that workers produce: the columns of the four tables side by side, and a ``kind``.

``kind`` is ``events``, ``metric``, ``error``, ``run``, or null for an invalid line, of which all columns except
``quarantine`` are null. ``copies`` and ``ids`` are not stored. Every event is in one row of ``events``, and in one of
each other kind that it belongs to.
"""


class Rollups(NamedTuple):
    """Five frames with the columns of ``schemas``. Each is mergeable: it may have any number of rows for a key.

    Attributes:
        events: ``schemas.EVENTS``.
        metrics: ``schemas.METRICS``.
        errors: ``schemas.ERRORS``.
        runs: ``schemas.RUNS``.
        quarantine: ``schemas.QUARANTINE``.
    """

    events: DataFrame
    metrics: DataFrame
    errors: DataFrame
    runs: DataFrame
    quarantine: DataFrame
