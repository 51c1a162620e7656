"""Selects events in a worker, without Spark: a time range, channels, a condition."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from balog.analytics.reading.schemas import QUARANTINE, struct
from balog.errors import EventError
from balog.event import decode
from balog.expressions import Expression

_READ = "id string, channel string, timestamp timestamp, level string, context map<string,string>, payload_json string"
_TO_SELECT = struct(_READ, quarantine=QUARANTINE)
_TO_MATCH = struct(f"{_READ}, schema string, composition boolean, context_json string", quarantine=QUARANTINE)


class Selection(msgspec.Struct, frozen=True):
    """Which events count, and where their hours begin.

    Attributes:
        since, until: the time range; until is exclusive.
        gap: a time range within it that does not count, or None.
        channels: a regular expression of channels; "" for all.
        where: a condition, see ``balog.expressions``; "" for none.
        past_the_hour: how long after a full hour the rollups' hours begin.
    """

    since: datetime | None = None
    until: datetime | None = None
    gap: tuple[datetime, datetime] | None = None
    channels: str = ""
    where: str = ""
    past_the_hour: timedelta = timedelta(0)

    @property
    def columns(self) -> pa.StructType:
        """The columns to read."""
        return _TO_MATCH if self.where else _TO_SELECT

    def keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that count, and invalid lines.

        Args:
            batch: with the columns of ``columns``.
        """
        moments = batch.column("timestamp")
        wanted = pc.invert(batch.column("quarantine").is_valid())
        if self.since is not None:
            wanted = pc.and_(wanted, pc.greater_equal(moments, _scalar(self.since)))
        if self.until is not None:
            wanted = pc.and_(wanted, pc.less(moments, _scalar(self.until)))
        if self.gap is not None:
            first, end = map(_scalar, self.gap)
            wanted = pc.and_(wanted, pc.or_(pc.less(moments, first), pc.greater_equal(moments, end)))
        if self.channels:
            names = batch.column("channel").unique()
            found = [name for name in names.to_pylist() if name is not None and re.search(self.channels, name)]
            wanted = pc.and_(wanted, pc.is_in(batch.column("channel"), pa.array(found, pa.string())))
        wanted = pc.fill_null(wanted, False)
        if self.where:
            rows = pc.indices_nonzero(wanted)
            condition = Expression(self.where)
            matches = [_matches(condition, row) for row in batch.take(rows).to_pylist()]
            wanted = pc.is_in(pa.array(range(batch.num_rows), pa.uint64()), rows.filter(pa.array(matches, pa.bool_())))
        return batch.filter(pc.or_(wanted, batch.column("quarantine").is_valid()))


def _scalar(moment: datetime) -> pa.Scalar:
    return pa.scalar(moment, pa.timestamp("us", "UTC"))


def _matches(condition: Expression, row: dict[str, Any]) -> bool:
    """Return whether an event matches; its payload is decoded only if the condition reads it."""
    with suppress(EventError):
        return condition.matches(decode(_line(row)))
    return False


def _line(row: dict[str, Any]) -> bytes:
    header = {
        "id": row["id"],
        "channel": row["channel"],
        "timestamp": row["timestamp"],
        "composition": row["composition"],
        "context": msgspec.Raw((row["context_json"] or "{}").encode()),
    }
    if row["level"] is not None:
        header["level"] = row["level"]
    payload = msgspec.Raw((row["payload_json"] or "{}").encode())
    return msgspec.json.encode({"schema": row["schema"], "header": header, "payload": payload})
