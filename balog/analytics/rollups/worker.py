"""What a worker makes of the events in its hands: rollup rows, by one SQL for lines of files and for frames.

The events are parsed once, into a relation that DuckDB keeps, and counted from there. What that costs: of the time
that reading lines takes, the tags of metrics, the texts of errors and the reports of runs are a sixth; each table made
of the relation reads only its own rows, so errors are dear where there are many of them, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from balog.analytics.reading.arrow_types import arrow_schema
from balog.analytics.rollups.errors import ERROR_LEVELS, ERROR_PAYLOAD, failure
from balog.analytics.rollups.schemas import LONGEST_KEY, ROLLUP
from balog.analytics.rollups.sketches import sketched

if TYPE_CHECKING:
    from balog.analytics.reading.parser import Parser

__all__ = ["RollupQuery", "roll_batches"]

_HOUR = 3_600_000_000
_YEAR_1 = 62_135_596_800_000_000  # microseconds from there to 1970, whole hours; // would round earlier times up
_MOST_ROWS, _MOST_BYTES = 100_000, 64 * 1024 * 1024

_PAYLOAD: dict[str, str | dict[str, str]] = {
    "cls_type": "VARCHAR",
    "type": "VARCHAR",
    "metric": "VARCHAR",
    "value": "VARCHAR",
    "values": "JSON",
    "tags": dict.fromkeys(("stream", "endpoint", "http_status_code", "status", "stage"), "VARCHAR"),
    "outcome": "VARCHAR",
    "duration": "VARCHAR",
    "records": "VARCHAR",
    "bytes": "VARCHAR",
    "streams": "JSON",
    **{name: "JSON" if name == "exception" else "VARCHAR" for name in ERROR_PAYLOAD},
}
"""Scalars are taken as text and cast afterwards: a value of another type is then a null and not an error."""


def _struct(fields: Mapping[str, str | Mapping[str, str]]) -> str:
    kinds = (f'"{name}" {kind if isinstance(kind, str) else _struct(kind)}' for name, kind in fields.items())
    return f"STRUCT({', '.join(kinds)})"


_COLUMNS = f"""{{'schema': 'VARCHAR', 'header': 'STRUCT(id VARCHAR, channel VARCHAR, "timestamp" TIMESTAMPTZ,
  "level" VARCHAR, composition BOOLEAN, context STRUCT(application VARCHAR, run_id VARCHAR))',
  'payload': '{_struct(_PAYLOAD)}'}}"""


def _roll(events: str) -> str:
    """Give the SQL of the rollup of a query that gives the columns of ``_EVENTS``."""
    return f"""WITH parsed AS ({events}), e AS MATERIALIZED (SELECT *,
  (epoch_us(moment) + {_YEAR_1}) // {_HOUR} AS hour FROM parsed),
g AS MATERIALIZED (SELECT hour, channel, "level", payload.cls_type AS cls_type, application, run_id,
  count(*) AS events, min(moment) AS "first", max(moment) AS "last", max(CASE WHEN payload.cls_type = 'run'
    THEN {_RUN} END) AS run FROM e GROUP BY ALL),
m AS (SELECT hour, channel, application, payload.metric AS metric, coalesce(payload."type", 'value') AS "type",
  payload.tags.stream AS stream, payload.tags.endpoint AS endpoint,
  coalesce(payload.tags.http_status_code, payload.tags.status) AS status, payload.tags.stage AS stage,
  TRY_CAST(payload."value" AS DOUBLE) AS number FROM e WHERE payload.cls_type = 'metric'
UNION ALL BY NAME SELECT hour, channel, application, 'value' AS "type", item ->> '$.name' AS metric,
  TRY_CAST(item ->> '$.value' AS DOUBLE) AS number FROM (SELECT hour, channel, application,
  unnest(json_extract(payload."values", '$[*]')) AS item FROM e WHERE payload.cls_type = 'metrics'))
SELECT 'events' AS kind, hour, channel, "level", {_cut("cls_type", "application")}, sum(events)::BIGINT AS events,
  min("first") AS "first", max("last") AS "last" FROM g GROUP BY ALL
UNION ALL BY NAME SELECT 'run' AS kind, hour, {_cut("run_id", "application")}, sum(events)::BIGINT AS events,
  sum(CASE WHEN "level" IN {ERROR_LEVELS} THEN events ELSE 0 END)::BIGINT AS errors,
  min("first") AS "first", max("last") AS "last", max(run) AS run FROM g WHERE run_id IS NOT NULL GROUP BY ALL
UNION ALL BY NAME SELECT 'metric' AS kind, * REPLACE (
  {_cut("application", "metric", "type", "stream", "endpoint", "status", "stage")}) FROM
  (SELECT * EXCLUDE (number), count(*) AS "count", sum(number) AS "sum", min(number) AS low, max(number) AS high,
  list(number) FILTER ("type" <> 'counter') AS sketch
  FROM m WHERE metric IS NOT NULL AND isfinite(number) GROUP BY ALL)
UNION ALL BY NAME SELECT 'error' AS kind, hour, channel, {_cut("application")}, "level", moment AS "first",
  struct_pack(id := left(id, {LONGEST_KEY}), run_id := left(run_id, {LONGEST_KEY}), cls_type := payload.cls_type,
    {_ERROR}) AS error
  FROM e WHERE "level" IN {ERROR_LEVELS} OR payload.cls_type = 'consumer_failure'"""  # noqa: S608


def _cut(*names: str) -> str:
    return ", ".join(f'left("{name}", {LONGEST_KEY}) AS "{name}"' for name in names)


_RUN = f"""struct_pack("at" := moment, outcome := payload.outcome, duration := TRY_CAST(payload.duration AS DOUBLE),
  exit_code := TRY_CAST(payload.exit_code AS INTEGER), records := TRY_CAST(payload.records AS BIGINT),
  bytes := TRY_CAST(payload.bytes AS BIGINT), signal := left(payload.signal, {LONGEST_KEY}),
  problem := left(payload.problem, {LONGEST_KEY}), streams := list_transform(json_transform(payload.streams,
    '[{{"stream":"VARCHAR","records":"BIGINT","bytes":"BIGINT"}}]')[:{LONGEST_KEY}], lambda x:
    struct_pack(stream := left(x.stream, {LONGEST_KEY}), records := x.records, bytes := x.bytes)))"""

_ERROR = ", ".join(
    f"{name} := payload.{name}"
    if length is None
    else f"{name} := {'left' if length > 0 else 'right'}(payload.{name}, {abs(length)})"
    for name, length in ERROR_PAYLOAD.items()
)

_EVENTS = """header.id AS id, header.channel AS channel, header."level" AS "level", header."timestamp" AS moment,
  header.context.application AS application, header.context.run_id AS run_id, payload"""
_SELECT, _, _REST = _roll(f"SELECT {_EVENTS}\0").partition("\0")
_FRAME = _roll(f"""SELECT id, channel, "level", moment, application, run_id,
  TRY(json_transform(payload_json, '{json.dumps(_PAYLOAD)}')) AS payload FROM batch""")  # noqa: S608


class RollupQuery:
    """The rollup of one block of lines."""

    is_digest = True
    only_events = False

    @property
    def arrow(self) -> pa.Schema:
        """``schemas.ROLLUP``."""
        return _schema()

    def run(self, parser: Parser) -> tuple[int, pa.Table]:
        """Give the number of events in the block, and the rows.

        Raises:
            ValueError: a time is not in the years 1 to 9999.
        """
        from balog.analytics.reading.scan import check_years

        table = parser.table(_COLUMNS, f"* FROM ({_SELECT}", f"{_REST})")
        check_years(table.column("first"))
        check_years(table.column("last"))
        counted = pc.sum(pc.if_else(pc.equal(table.column("kind"), "events"), table.column("events"), 0))
        return counted.as_py() or 0, _finished(table)


def roll_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the rollup of events that Spark hands over, of many of them at a time.

    Args:
        batches: in columns ``id``, ``channel``, ``level``, ``moment``, ``application``, ``run_id``, ``payload_json``
            and ``quarantine``; a payload that is no JSON counts as an event of no type.
    """
    for table in _gathered(batches):
        bad = table.column("quarantine").is_valid()
        broken = table.filter(bad).select(["quarantine"])
        if broken.num_rows:
            yield from _typed(broken).to_batches()
        events = table.filter(pc.invert(bad)).drop_columns(["quarantine"])
        if events.num_rows:
            with duckdb.connect(config={"threads": 1}) as connection:
                connection.register("batch", events)
                yield from _finished(connection.sql(_FRAME).to_arrow_table()).to_batches()


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _MOST_ROWS or size >= _MOST_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def _finished(table: pa.Table) -> pa.Table:
    """Turn hours into instants, lists of values into sketches, and errors into rows by fingerprint."""
    hours = pc.subtract(pc.multiply(table.column("hour"), _HOUR), _YEAR_1).cast(pa.timestamp("us", "UTC"))
    table = table.set_column(table.schema.get_field_index("hour"), "hour", hours)
    errors = pc.equal(table.column("kind"), "error")
    counted, failed = table.filter(pc.invert(errors)), table.filter(errors)
    lists = counted.column("sketch").combine_chunks()
    values, offsets = lists.values.to_numpy().copy(), lists.offsets.to_numpy()  # datasketches refuses read-only memory
    sketches = [sketched(values[start:end]) if end > start else None for start, end in pairwise(offsets)]
    place = counted.schema.get_field_index("sketch")
    rows = _typed(counted.set_column(place, "sketch", pa.array(sketches, pa.binary())))
    if failed.num_rows:
        found = _failures(failed.select(["hour", "channel", "application", "level", "first", "error"]))
        rows = pa.concat_tables([rows, _typed(pa.Table.from_pylist(found, schema=_schema()))])
    return rows


def _failures(errors: pa.Table) -> list[dict[str, Any]]:
    """Count errors by fingerprint and the other keys, each with its first event as an example."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for hour, channel, application, level, moment, error in zip(*(column.to_pylist() for column in errors.columns)):
        told = failure(error)
        example = {"timestamp": moment, "id": error["id"], "run_id": error["run_id"], "message": told.said}
        row = rows.setdefault(
            (hour, channel, application, level, told.fingerprint),
            {
                "kind": "error",
                "hour": hour,
                "fingerprint": told.fingerprint,
                "channel": channel,
                "application": application,
                "level": level,
                "error_type": told.error_type,
                "message": told.message,
                "events": 0,
                "first": moment,
                "last": moment,
                "example": example,
            },
        )
        row["events"] += 1
        row["last"] = max(row["last"], moment)
        if _order(example) < _order(row["example"]):
            row["first"], row["example"] = moment, example
    return list(rows.values())


def _order(example: dict[str, Any]) -> tuple[Any, ...]:
    """Give what Spark's ``min`` compares two examples by: nulls come first."""
    return tuple((example[name] is not None, example[name]) for name in ("timestamp", "id", "run_id", "message"))


def _typed(table: pa.Table) -> pa.Table:
    """Give the columns of ``schemas.ROLLUP``, null where the table has none."""
    columns = []
    for field in _schema():
        column = table.column(field.name) if field.name in table.column_names else pa.nulls(table.num_rows)
        is_empty = column.null_count == table.num_rows  # of whatever type
        columns.append(pa.nulls(table.num_rows, field.type) if is_empty else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=_schema())


@lru_cache(maxsize=1)
def _schema() -> pa.Schema:
    return arrow_schema(ROLLUP)
