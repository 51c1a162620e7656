"""Aggregates events in a worker: rollup rows, by the same SQL for lines of files and for frames.

There are two steps. First, each block is grouped once by the keys of all tables together into a small digest: DuckDB
spends this step parsing, and planning a large query for each block would cost up to a fifth of that. A digest contains
the few events that are needed in full: errors, reports of runs, payloads with many metrics. Second, the digests of a
task, up to ``scan``'s limit, are rolled up together, so that the cost of the large query is paid once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from balog.analytics.reading.parser import Parser, borrow_parser
from balog.analytics.rollups.schemas import COPIES, IDS, LONGEST_KEY, ROLLUP
from balog.analytics.sketches import sketched
from balog.event.fingerprints import ERROR_LEVELS, ERROR_PAYLOAD, failure

_HOUR = 3_600_000_000
_YEAR_1 = 62_135_596_800_000_000  # microseconds from there to 1970, in whole hours; // would round earlier times up
_BUCKET_BITS = 6  # ids are compared in one task of Spark if the first bits of their hashes are equal
_BUCKETS = 1 << _BUCKET_BITS
_MOST_ROWS, _MOST_BYTES = 100_000, 64 * 1024 * 1024

_PAYLOAD: dict[str, str | dict[str, str]] = {
    **dict.fromkeys(("cls_type", "values", "streams"), "JSON"),
    **dict.fromkeys(("type", "metric", "value", "outcome", "duration", "records", "bytes"), "VARCHAR"),
    "tags": dict.fromkeys(("stream", "endpoint", "http_status_code", "status", "stage"), "VARCHAR"),
    **{name: "JSON" if name == "exception" else "VARCHAR" for name in ERROR_PAYLOAD},
}
"""Scalars are parsed as text and cast afterwards, so that a value of another type is null, not an error."""


def _struct(fields: Mapping[str, str | Mapping[str, str]]) -> str:
    kinds = (f'"{name}" {kind if isinstance(kind, str) else _struct(kind)}' for name, kind in fields.items())
    return f"STRUCT({', '.join(kinds)})"


_COLUMNS = f"""{{'header': 'STRUCT(id VARCHAR, channel VARCHAR, "timestamp" TIMESTAMPTZ, "level" VARCHAR,
  context STRUCT(application VARCHAR, run_id VARCHAR))',
  'payload': '{_struct(_PAYLOAD)}'}}"""


def _digested(lines: str, more: str = "") -> str:
    """Return the SQL of a digest, for a query with the columns of ``_LINES``; ``more`` are further aggregates.

    Grouping by all keys at once reads each line once and keeps nothing of it, except the events of ``_RARE``.
    """
    return f"""(epoch_us(moment) + {_YEAR_1}) // {_HOUR} AS hour, channel, "level", application, run_id,
  cls_type, payload."type" AS "type", payload.metric AS metric, payload.tags.stream AS stream,
  payload.tags.endpoint AS endpoint, coalesce(payload.tags.http_status_code, payload.tags.status) AS status,
  payload.tags.stage AS stage, count(*) AS events, min(moment) AS "first", max(moment) AS "last",
  count(number) AS "count", sum(number) AS "sum", min(number) AS low, max(number) AS high,
  list(number) FILTER (number IS NOT NULL AND payload."type" IS DISTINCT FROM 'counter') AS numbers,
  list(struct_pack(id := id, moment := moment, payload := payload)) FILTER ({_RARE}) AS details{more}
FROM (SELECT *, CASE WHEN cls_type = 'metric' AND isfinite(TRY_CAST(payload."value" AS DOUBLE))
  THEN TRY_CAST(payload."value" AS DOUBLE) END AS number FROM (SELECT {lines})) GROUP BY ALL"""  # noqa: S608


_RARE = f""""level" IN {ERROR_LEVELS} OR cls_type IN ('run', 'metrics', 'consumer_failure')"""


def _cut(*names: str) -> str:
    return ", ".join(f'left("{name}", {LONGEST_KEY}) AS "{name}"' for name in names)


_RUN = f"""struct_pack("at" := moment, outcome := payload.outcome, duration := TRY_CAST(payload.duration AS DOUBLE),
  exit_code := TRY_CAST(payload.exit_code AS INTEGER), records := TRY_CAST(payload.records AS BIGINT),
  bytes := TRY_CAST(payload.bytes AS BIGINT), signal := left(payload.signal, {LONGEST_KEY}),
  problem := left(payload.problem, {LONGEST_KEY}), streams := list_transform(TRY(json_transform(payload.streams,
    '[{{"stream":"VARCHAR","records":"BIGINT","bytes":"BIGINT"}}]'))[:{LONGEST_KEY}], lambda x:
    struct_pack(stream := left(x.stream, {LONGEST_KEY}), records := x.records, bytes := x.bytes)))"""

_LATEST = """arg_max(run, struct_pack("at" := run."at", outcome := coalesce(run.outcome, ''),
  duration := coalesce(run.duration, -1e308), exit_code := coalesce(run.exit_code, 0),
  records := coalesce(run.records, -1), bytes := coalesce(run.bytes, -1), streams := coalesce(list_transform(
    run.streams, lambda x: struct_pack(stream := coalesce(x.stream, ''), records := coalesce(x.records, -1),
    bytes := coalesce(x.bytes, -1))), []))) FILTER (run IS NOT NULL) AS run"""
"""the latest report; of one time, the same one as among all tasks, see ``questions.runs``"""

_ERROR = ", ".join(
    f"{name} := payload.{name}"
    if length is None
    else f"{name} := {'left' if length > 0 else 'right'}(payload.{name}, {abs(length)})"
    for name, length in ERROR_PAYLOAD.items()
)

_TYPE = "CASE WHEN starts_with(payload.cls_type, '\"') THEN payload.cls_type ->> '$' END AS cls_type"
"""a type's name is always a string"""

_LINES = f"""header.id AS id, header.channel AS channel, header."level" AS "level", header."timestamp" AS moment,
  header.context.application AS application, header.context.run_id AS run_id, {_TYPE}, payload"""
_SELECT, _, _REST = _digested(f"{_LINES} FROM \0").partition(" FROM \0")
_SELECT_IDS = _digested(f"{_LINES} FROM \0", ", list(hash(id)) AS ids").partition(" FROM \0")[0]
_FRAME = _digested(f"""*, {_TYPE} FROM (SELECT id, channel, "level", "timestamp" AS moment, application, run_id,
  TRY(json_transform(payload_json, '{json.dumps(_PAYLOAD)}')) AS payload FROM given)""")  # noqa: S608

_ROLLED = f"""WITH details AS (SELECT * EXCLUDE (t), t.* FROM
  (SELECT hour, channel, "level", cls_type, application, run_id, unnest(details) AS t FROM given)),
m AS (SELECT hour, channel, application, metric, coalesce("type", 'value') AS "type", stream, endpoint, status, stage,
  CASE WHEN metric = 'record_count' AND "type" = 'counter' THEN run_id END AS run_id,
  "count", "sum", low, high, numbers FROM given WHERE cls_type = 'metric' AND metric IS NOT NULL AND "count" > 0
UNION ALL BY NAME SELECT hour, channel, application, metric, 'value' AS "type", 1 AS "count", number AS "sum",
  number AS low, number AS high, [number] AS numbers FROM (SELECT hour, channel, application,
  item ->> '$.name' AS metric, TRY_CAST(item ->> '$.value' AS DOUBLE) AS number FROM (SELECT hour, channel, application,
  unnest(TRY(json_extract(payload."values", '$[*]'))) AS item FROM details WHERE cls_type = 'metrics'))
  WHERE metric IS NOT NULL AND isfinite(number)),
reports AS (SELECT hour, run_id, application, {_LATEST} FROM (SELECT hour, run_id, application, {_RUN} AS run
  FROM details WHERE cls_type = 'run') GROUP BY ALL)
SELECT 'events' AS kind, hour, channel, "level", {_cut("cls_type", "application")}, sum(events)::BIGINT AS events,
  min("first") AS "first", max("last") AS "last" FROM given GROUP BY ALL
UNION ALL BY NAME SELECT 'run' AS kind, hour, {_cut("run_id", "application")}, sum(events)::BIGINT AS events,
  sum(CASE WHEN "level" IN {ERROR_LEVELS} THEN events ELSE 0 END)::BIGINT AS errors,
  min("first") AS "first", max("last") AS "last", {_LATEST} FROM
  (SELECT hour, run_id, application, "level", events, "first", "last", NULL AS run FROM given
   UNION ALL BY NAME SELECT hour, run_id, application, run FROM reports) WHERE run_id IS NOT NULL GROUP BY ALL
UNION ALL BY NAME SELECT 'metric' AS kind, hour, channel,
  {_cut("application", "metric", "type", "stream", "endpoint", "status", "stage", "run_id")},
  sum("count")::BIGINT AS "count", sum("sum") AS "sum",
  min(low) AS low, max(high) AS high, flatten(list(numbers)) AS sketch FROM m GROUP BY ALL
UNION ALL BY NAME SELECT 'error' AS kind, hour, channel, {_cut("application")}, "level", moment AS "first",
  struct_pack(id := left(id, {LONGEST_KEY}), run_id := left(run_id, {LONGEST_KEY}), cls_type := cls_type,
    {_ERROR}) AS error
  FROM details WHERE "level" IN {ERROR_LEVELS} OR cls_type = 'consumer_failure'"""  # noqa: S608


class RollupQuery:
    """The rollup of lines.

    Args:
        with_ids: whether to return rows of the kind ``ids``, too.
    """

    is_digest = True
    only_events = False

    def __init__(self, *, with_ids: bool = False) -> None:
        self._with_ids = with_ids

    @property
    def arrow(self) -> pa.Schema:
        """``schemas.ROLLUP``."""
        return ROLLUP

    def run(self, parser: Parser) -> tuple[int, pa.Table]:
        """Return the number of events in the block, and its digest.

        Raises:
            ValueError: a time is not in the years 1 to 9999.
        """
        from balog.analytics.reading.scan import check_years

        table = parser.table(_COLUMNS, _SELECT_IDS if self._with_ids else _SELECT, _REST)
        check_years(table.column("first"))
        check_years(table.column("last"))
        return pc.sum(table.column("events")).as_py() or 0, table

    def merge(self, parser: Parser, digests: Sequence[pa.Table]) -> pa.Table:
        """Return the rollup rows of digests, and those of the events' ids."""
        given = pa.concat_tables(digests)
        if not self._with_ids:
            return _finished(parser.ask(_ROLLED, given))
        rows = _finished(parser.ask(_ROLLED, given.drop_columns(["ids"])))
        return pa.concat_tables([rows, _id_rows(given.column("ids").combine_chunks().flatten())])


def _id_rows(id_hashes: pa.Array) -> pa.Table:
    """Return the 64-bit hashes of ids as rows of the kind ``ids``, in one row for each value of the highest bits."""
    hashes = np.sort(id_hashes.to_numpy(zero_copy_only=False).astype(np.uint64))
    first = np.arange(1, _BUCKETS, dtype=np.uint64) << np.uint64(64 - _BUCKET_BITS)
    ends = [0, *np.searchsorted(hashes, first).tolist(), len(hashes)]
    parts = [(number, hashes[start:end].tobytes()) for number, (start, end) in enumerate(pairwise(ends)) if end > start]
    return _typed(
        pa.table(
            {
                "kind": pa.array([IDS] * len(parts), pa.string()),
                "count": pa.array([number for number, _ in parts], pa.int64()),
                "sketch": pa.array([data for _, data in parts], pa.binary()),
            }
        )
    )


def hashes_of(events: pa.Table) -> pa.Array:
    """Return the 64-bit hashes of events' ids."""
    with borrow_parser() as parser:
        return parser.ask("SELECT hash(id) AS ids FROM given", events.select(["id"])).column("ids").combine_chunks()


def copied_hashes(sketches: Sequence[bytes]) -> np.ndarray[Any, Any]:
    """Return the hashes that are in several rows, once for each further time, sorted.

    Args:
        sketches: the column ``sketch`` of rows of the kind ``ids``.
    """
    parts = [np.frombuffer(data, np.uint64) for data in sketches]
    hashes = np.sort(np.concatenate([np.empty(0, np.uint64), *parts]))
    copies: np.ndarray[Any, Any] = hashes[1:][hashes[1:] == hashes[:-1]]
    return copies


def count_copies(rows: pa.Table) -> int:
    """Return how many events of rows of the kind ``ids`` are duplicates."""
    return len(copied_hashes(rows.column("sketch").to_pylist()))


def _first_copies(table: pa.Table) -> tuple[pa.Table, int]:
    """Return the first row of each id, and the number of other rows."""
    if "copy" not in table.column_names:
        return table, 0
    first = table.filter(pc.equal(table.column("copy"), 1)).drop_columns(["copy"])
    return first, table.num_rows - first.num_rows


EVENT_COLUMNS = ["id", "channel", "level", "timestamp", "application", "run_id", "payload_json"]
"""The columns of events that are rolled up."""


def with_context(events: pa.RecordBatch) -> pa.RecordBatch:
    """Append the columns ``run_id`` and ``application`` from the context, which is a map or a struct."""
    context = events.column("context")
    for name in ("run_id", "application"):
        values = pc.struct_field(context, name) if pa.types.is_struct(context.type) else _map_values(context, name)
        events = events.append_column(name, values)
    return events


def _map_values(maps: pa.MapArray, name: str) -> pa.Array:
    """Return the value of a key in each map, or null; several times as fast as ``map_lookup``."""
    offsets = maps.offsets.to_numpy()
    keys = maps.keys.slice(offsets[0], offsets[-1] - offsets[0]) if len(maps) else maps.keys[:0]
    indices = pc.indices_nonzero(pc.equal(keys, name)).to_numpy()[::-1]
    rows = np.repeat(np.arange(len(maps)), np.diff(offsets))[indices]
    takes = np.full(len(maps), -1, dtype=np.int64)
    takes[rows] = indices + offsets[0]  # of duplicate keys, the first is stored last
    return maps.items.take(pa.array(takes, mask=takes < 0))


def roll_batches(batches: Iterator[pa.RecordBatch], *, with_ids: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the rollup of events, many at a time.

    Args:
        batches: with ``EVENT_COLUMNS``; a payload that is not JSON counts as an event without a type. Where there is a
            column ``quarantine``, its values are invalid lines. In a column ``copy``, 1 marks the first row of an id;
            other rows are only counted, in a row of the kind ``copies``.
        with_ids: whether to return rows of the kind ``ids``, too.
    """
    for given in gathered(batches):
        table, copies = _first_copies(given)
        if copies:
            counted = pa.table({"kind": pa.array([COPIES]), "count": pa.array([copies], pa.int64())})
            yield from _typed(counted).to_batches()
        if "quarantine" in table.column_names:
            bad = table.column("quarantine").is_valid()
            broken, table = table.filter(bad).select(["quarantine"]), table.filter(pc.invert(bad))
            if broken.num_rows:
                yield from _typed(broken).to_batches()
        if table.num_rows:
            with borrow_parser() as parser:
                digest = parser.ask(f"SELECT {_FRAME}", table.select(EVENT_COLUMNS))
                yield from _finished(parser.ask(_ROLLED, digest)).to_batches()
            if with_ids:
                yield from _id_rows(hashes_of(table)).to_batches()


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Combine small batches, because each query of the parser has a fixed cost."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + batch.num_rows > _MOST_ROWS or size + batch.nbytes > _MOST_BYTES):
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if rows:
        yield pa.Table.from_batches(held)


def _finished(table: pa.Table) -> pa.Table:
    """Convert hours to timestamps, lists of values to sketches, and errors to rows by fingerprint."""
    hours = pc.subtract(pc.multiply(table.column("hour"), _HOUR), _YEAR_1).cast(pa.timestamp("us", "UTC"))
    table = table.set_column(table.schema.get_field_index("hour"), "hour", hours)
    errors = pc.equal(table.column("kind"), "error")
    counted, failed = table.filter(pc.invert(errors)), table.filter(errors)
    lists = counted.column("sketch").combine_chunks()
    values, offsets = lists.values.to_numpy().copy(), lists.offsets.to_numpy()  # datasketches rejects read-only memory
    sketches = [sketched(values[start:end]) if end > start else None for start, end in pairwise(offsets)]
    index = counted.schema.get_field_index("sketch")
    rows = _typed(counted.set_column(index, "sketch", pa.array(sketches, pa.binary())))
    if failed.num_rows:
        failures = _failures(failed.select(["hour", "channel", "application", "level", "first", "error"]))
        rows = pa.concat_tables([rows, _typed(pa.Table.from_pylist(failures, schema=ROLLUP))])
    return rows


def _failures(errors: pa.Table) -> list[dict[str, Any]]:
    """Count errors by fingerprint and the other keys, each with its first event as an example."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for hour, channel, application, level, moment, error in zip(*(column.to_pylist() for column in errors.columns)):
        details = failure(error)
        example = {"timestamp": moment, "id": error["id"], "run_id": error["run_id"], "message": details.original}
        key = {"hour": hour, "channel": channel, "application": application, "level": level}
        key["fingerprint"] = details.fingerprint
        known = {"error_type": details.error_type, "message": details.message}
        times = {"events": 0, "first": moment, "last": moment, "example": example}
        row = rows.setdefault(tuple(key.values()), {"kind": "error", **key, **known, **times})
        row["events"] += 1
        row["last"] = max(row["last"], moment)
        if _order(example) < _order(row["example"]):
            row["first"], row["example"] = moment, example
    return list(rows.values())


def _order(example: dict[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of an example in Spark's ``min``: nulls come first."""
    return tuple((example[name] is not None, example[name]) for name in ("timestamp", "id", "run_id", "message"))


def _typed(table: pa.Table) -> pa.Table:
    """Return the columns of ``schemas.ROLLUP``, null where the table has none."""
    columns = []
    for field in ROLLUP:
        column = table.column(field.name) if field.name in table.column_names else pa.nulls(table.num_rows)
        is_empty = column.null_count == table.num_rows  # of any type
        columns.append(pa.nulls(table.num_rows, field.type) if is_empty else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=ROLLUP)
