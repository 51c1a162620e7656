"""Events out of tables, in the order of their times: one statement for both engines, and rows as events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import msgspec
from msgspec import UNSET, Raw, Struct

from balog.analytics.engine import EPOCH, micros
from balog.event import Event, Header, parse_level

_COLUMNS = ("id", "schema", "channel", "micros", "level", "context", "payload")


class _Row(Struct, rename=dict(zip(_COLUMNS, (f"c{number}" for number in range(7))))):
    id: str
    schema: str
    channel: str
    micros: int
    level: str | None
    context: dict[str, str | None] | None
    payload: str | None


_decode = msgspec.json.Decoder(_Row).decode


def events_query(types: Sequence[str], since: datetime, until: datetime, *, errors: bool = False) -> str:
    """Return the statement for ``event_of``.

    Args:
        types: payload types; letters, digits and ``_`` only.
        since, until: the time of the events, with zones; ``until`` is exclusive.
        errors: also the errors of all other types.
    """
    wanted = f"cls_type IN ({', '.join(repr(name) for name in types)})"
    if errors:
        wanted = f"({wanted} OR level IN ('ERROR', 'CRITICAL') OR cls_type = 'consumer_failure')"
    first, last = (when.astimezone(timezone.utc) for when in (since, until))
    return f"""
        SELECT id, schema, channel, unix_micros(timestamp) AS micros, level, context, payload_json AS payload
        FROM events
        WHERE {wanted} AND date >= DATE '{first:%Y-%m-%d}' AND date <= DATE '{last:%Y-%m-%d}'
            AND unix_micros(timestamp) >= {micros(first)} AND unix_micros(timestamp) < {micros(last)}
        ORDER BY timestamp, id
    """  # noqa: S608  types and numbers only


def event_of(row: str) -> Event:
    """Return the event of a row of ``events_query``: the text of an object with the fields ``c0``, ``c1`` …"""
    record = _decode(row)
    header = Header(
        id=record.id,
        channel=record.channel,
        timestamp=EPOCH + timedelta(microseconds=record.micros),
        level=(parse_level(record.level) if record.level is not None else None) or UNSET,
        context={name: value for name, value in (record.context or {}).items() if value is not None},
    )
    return Event(schema=record.schema, header=header, stored_payload=Raw((record.payload or "null").encode()))
