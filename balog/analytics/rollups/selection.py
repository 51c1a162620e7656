"""Selects events in a worker, without Spark: a condition, in a time range."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from balog.analytics.reading.schemas import QUARANTINE, struct
from balog.common.errors import EventError
from balog.event import Event, Header
from balog.filters import Expression


class Selection(msgspec.Struct, frozen=True):
    """Which events count.

    Attributes:
        where: a condition, see ``balog.filters``.
        since, until: the time range; until is exclusive.
    """

    where: str
    since: datetime | None = None
    until: datetime | None = None

    def keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that count, and invalid lines.

        Args:
            batch: with the columns of ``COLUMNS``.
        """
        moments = batch.column("timestamp")
        wanted = pc.invert(batch.column("quarantine").is_valid())
        if self.since is not None:
            wanted = pc.and_(wanted, pc.greater_equal(moments, _scalar(self.since)))
        if self.until is not None:
            wanted = pc.and_(wanted, pc.less(moments, _scalar(self.until)))
        rows = pc.indices_nonzero(pc.fill_null(wanted, False))
        condition = Expression(self.where)
        matches = [_matches(condition, row) for row in batch.take(rows).to_pylist()]
        wanted = pc.is_in(pa.array(range(batch.num_rows), pa.uint64()), rows.filter(pa.array(matches, pa.bool_())))
        return batch.filter(pc.or_(wanted, batch.column("quarantine").is_valid()))


COLUMNS = struct(
    "id string, channel string, timestamp timestamp, level string, context map<string,string>, payload_json string, "
    "schema string, composition boolean, context_json string",
    quarantine=QUARANTINE,
)
"""The columns to read for a selection."""


def _scalar(moment: datetime) -> pa.Scalar:
    return pa.scalar(moment, pa.timestamp("us", "UTC"))


def _matches(condition: Expression, row: dict[str, Any]) -> bool:
    """Return whether an event matches; its payload is decoded only if the condition reads it."""
    with suppress(EventError, msgspec.DecodeError):
        return condition.matches(event_from_row(row))
    return False


def event_from_row(row: dict[str, Any]) -> Event:
    """Return the event of a row with the columns of ``COLUMNS``.

    Raises:
        msgspec.DecodeError: the context has a number beyond the doubles.
    """
    header = Header(
        id=row["id"],
        channel=row["channel"],
        timestamp=row["timestamp"],
        level=row["level"] if row["level"] is not None else UNSET,
        composition=row["composition"],
        context=msgspec.json.decode(row["context_json"] or "{}"),
    )
    return Event(
        schema=row["schema"], header=header, stored_payload=msgspec.Raw((row["payload_json"] or "{}").encode())
    )
