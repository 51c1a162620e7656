"""Reads slices of files as Arrow batches.

DuckDB parses whole blocks; a block with invalid lines is read line by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Protocol, TypeAlias

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from balog.analytics.reading.blocks import RAW_LIMIT, BadLine, Block
from balog.analytics.reading.forms import EventLines, pieces, read_parts
from balog.analytics.reading.parser import Parser, borrow_parser, exact_payloads, inexact_lines
from balog.analytics.reading.projection import Projection
from balog.analytics.reading.remote import StoragePool
from balog.analytics.reading.schemas import VARIANT
from balog.analytics.reading.tasks import Slice
from balog.analytics.reading.topics import is_topic, read_topic
from balog.analytics.reading.validation import NormalizedLines, count_events, normalize
from balog.analytics.reading.variant import encode

_REFUSALS = (duckdb.Error, msgspec.DecodeError, RecursionError, ValueError)
_PARSER_ERRORS = (duckdb.OperationalError, duckdb.InternalError, duckdb.FatalException, duckdb.InterruptException)
"""Errors that no line has caused: memory or a disk is full, an interrupt, or the parser itself failed."""
_SMALL = 256 * 1024
_TOGETHER = 4 * 1024 * 1024  # a query takes the parser a millisecond or more, however few lines there are
_DIGESTED, _MOST_DIGESTS = 32 * 1024 * 1024, 500  # bytes and number of digests that are held before they are merged
_CLOSELY = 2 * 1024 * 1024  # bytes to query at a time in a block with invalid lines
_MOST_QUARANTINED = 1000  # rows of a batch; each has up to 64 KiB of raw text

_Answer: TypeAlias = "pa.Table | pa.RecordBatch"  # a query's result for valid lines; rows of quarantine


class Query(Protocol):
    """A query on each block of valid lines.

    Attributes:
        is_digest: results are small, and are merged before they are returned.
        only_events: omit invalid lines.
    """

    is_digest: bool
    only_events: bool

    @property
    def arrow(self) -> pa.Schema:
        """The schema of the batches."""

    def run(self, parser: Parser) -> tuple[int | None, pa.Table]:
        """Return the number of events that were read (None if unknown) and the result.

        May raise ``duckdb.Error`` or ``ValueError``.
        """

    def merge(self, parser: Parser, digests: Sequence[pa.Table]) -> pa.Table:
        """Merge the results of one or more blocks; it must not raise, whatever the events contain."""


_YEARS = datetime(1, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc)


def check_years(moments: pa.ChunkedArray) -> None:
    """Check that times are in the years that Python and Spark support.

    Raises:
        ValueError: a time is before the year 1 or after 9999 in UTC.
    """
    bounds, (first, last) = pc.min_max(moments), (pa.scalar(moment, moments.type) for moment in _YEARS)
    if pc.less(bounds["min"], first).as_py() or pc.greater(bounds["max"], last).as_py():
        raise ValueError("a time is not in the years 1 to 9999 in UTC")


class EventQuery:
    """A row for each event, in the columns of a projection."""

    is_digest = False

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self.only_events = bool(projection.rest)

    @property
    def arrow(self) -> pa.Schema:
        """The projection's schema."""
        return self._projection.arrow

    def run(self, parser: Parser) -> tuple[int | None, pa.Table]:
        """Return a row for each line of the block that meets the projection's conditions."""
        table = self._query_projection(parser)
        if "timestamp" in table.column_names:
            check_years(table.column("timestamp"))
        for field in self.arrow:
            index = table.schema.get_field_index(field.name)
            if pa.types.is_map(field.type):
                table = table.set_column(index, field.name, _maps(parser, table.column(index)))
            elif field.type == VARIANT:
                table = table.set_column(index, field.name, _variants(table.column(index)))
        return None if self._projection.rest else table.num_rows, table

    def _query_projection(self, parser: Parser) -> pa.Table:
        """Query the projection; numbers in a payload's text are as they were written."""
        columns, select, rest = self._projection.columns, self._projection.select, self._projection.rest
        data = bytes(parser.data) if self._projection.texts else b""
        inexact = inexact_lines(data)
        if not inexact:
            return parser.table(columns, select, rest)
        kept = rest.removeprefix("WHERE ") or "true"
        table = parser.table(columns, f'{select}, ({kept}) AS "kept?"')
        exact = exact_payloads(data, inexact, table.num_rows)
        for name in self._projection.texts if exact else ():
            texts = table.column(name).to_pylist()
            texts = [exact.get(row, text) for row, text in enumerate(texts)]
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(texts, pa.string()))
        return table.filter(table.column("kept?")).drop_columns(["kept?"])

    def merge(self, parser: Parser, digests: Sequence[pa.Table]) -> pa.Table:
        """Concatenate the results."""
        return pa.concat_tables(digests)


_MAPS = "SELECT CAST(CAST(text AS JSON) AS MAP(VARCHAR, VARCHAR)) AS map FROM given"


def _maps(parser: Parser, texts: pa.ChunkedArray) -> pa.Array:
    """Return objects of JSON as maps, each text converted once: the events of a run have the same context."""
    distinct = texts.combine_chunks().dictionary_encode()
    maps = parser.ask(_MAPS, pa.table({"text": distinct.dictionary})).column("map")
    return maps.combine_chunks().take(distinct.indices)


def _variants(texts: pa.ChunkedArray) -> pa.StructArray:
    parts = list(zip(*map(encode, texts.to_pylist()))) or [(), ()]
    return pa.StructArray.from_arrays([pa.array(part, pa.binary()) for part in parts], fields=list(VARIANT))


def scan(
    slices: Sequence[Slice],
    query: Query,
    storages: StoragePool | None = None,
    form: str = "auto",
    is_growth: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Query every event that begins in slices. Invalid lines become rows of quarantine; they raise nothing.

    Args:
        slices: the slices of one task.
        query: the query.
        storages: opens stores.
        form: the form of the files.
        is_growth: see ``balog.analytics.reading.forms.read_parts``.
    """
    with borrow_parser() as parser:
        answers = _answers(parser, query, slices, storages or StoragePool(), form, is_growth)
        yield from _in_schema(parser, query, answers)


def _in_schema(parser: Parser, query: Query, answers: Iterator[_Answer]) -> Iterator[pa.RecordBatch]:
    """Yield results in the query's schema; digests are merged first, as many as there are or memory allows."""
    held: list[pa.Table] = []
    size = 0
    for answer in answers:
        if isinstance(answer, pa.RecordBatch):
            yield answer
            continue
        held.append(answer)
        size += answer.nbytes
        if size >= _DIGESTED or len(held) >= _MOST_DIGESTS or not query.is_digest:
            yield from _batches(query.merge(parser, held), query.arrow)
            held, size = [], 0
    if held:
        yield from _batches(query.merge(parser, held), query.arrow)


def _answers(
    parser: Parser, query: Query, slices: Sequence[Slice], storages: StoragePool, form: str, is_growth: bool
) -> Iterator[_Answer]:
    small: list[tuple[str, Block]] = []
    size = 0
    for piece in slices:
        if is_topic(piece.path):
            for lines in read_topic(piece):
                yield from _lines(parser, query, piece.path, lines)
            continue
        for part in read_parts(piece, parser.buffer, storages, form, is_growth):
            is_small = isinstance(part, Block) and len(part.data) < _SMALL
            if isinstance(part, Block) and is_small:
                small.append((piece.path, Block(part.offset, memoryview(bytes(part.data)))))
                size += len(part.data)
            if not is_small or size >= _TOGETHER:
                yield from _pieces(parser, query, small)
                small, size = [], 0
            if not is_small:
                yield from _part(parser, query, piece.path, part)
    yield from _pieces(parser, query, small)


def _part(parser: Parser, query: Query, path: str, part: Block | EventLines | BadLine) -> Iterator[_Answer]:
    if isinstance(part, Block):
        yield from _block(parser, query, path, part)
    elif isinstance(part, EventLines):
        yield from _lines(parser, query, path, part)
    else:
        yield _quarantined(query, path, [part])


def _pieces(parser: Parser, query: Query, pieces: list[tuple[str, Block]]) -> Iterator[_Answer]:
    """Query the blocks of small files together; if one has invalid lines, query each half."""
    if len(pieces) > 1:
        table = _query_strict(parser, query, memoryview(b"".join(block.data for _, block in pieces)))
        if table is not None:
            yield table
            return
        half = len(pieces) // 2
        yield from _pieces(parser, query, pieces[:half])
        yield from _pieces(parser, query, pieces[half:])
    elif pieces:
        yield from _block(parser, query, *pieces[0])


def _block(parser: Parser, query: Query, path: str, block: Block) -> Iterator[_Answer]:
    table = _query_strict(parser, query, block.data)
    if table is not None:
        yield table
        return
    # Reading line by line takes a hundred times the memory, and one invalid line should not cost that for all others.
    for data, offset in pieces(block, _CLOSELY):
        part = Block(offset, memoryview(data))
        table = _query_strict(parser, query, part.data) if len(data) < len(block.data) else None
        if table is not None:
            yield table
        else:
            yield from _query_normalized(parser, query, path, normalize(part))


def _lines(parser: Parser, query: Query, path: str, lines: EventLines) -> Iterator[_Answer]:
    """Query events that were converted from another form, as a block."""
    table = _query_strict(parser, query, memoryview(b"\n".join([*lines.events, b""])), len(lines.events))
    if table is not None:
        yield table
        yield from _query_normalized(parser, query, path, NormalizedLines([], [], lines.bad))
    else:
        yield from _query_normalized(parser, query, path, lines.normalize())


def _query_strict(parser: Parser, query: Query, data: memoryview, lines: int | None = None) -> pa.Table | None:
    """Query a whole block with the strict parser; return None if it may have invalid lines."""
    count = count_events(data)
    if count is None or lines not in (None, count):
        return None
    return _answer(parser, query, data, count, lenient=False)


def _query_normalized(parser: Parser, query: Query, path: str, normalized: NormalizedLines) -> Iterator[_Answer]:
    events, offsets, bad = normalized
    yield from _ask(parser, query, events, offsets, bad)
    for start in range(0, len(bad), _MOST_QUARANTINED):
        yield _quarantined(query, path, bad[start : start + _MOST_QUARANTINED])


def _ask(
    parser: Parser, query: Query, events: list[bytes], offsets: list[int], bad: list[BadLine]
) -> Iterator[_Answer]:
    """Query normalized events; if that fails, query each half, until the invalid line is alone."""
    if not events:
        return
    data = memoryview(b"\n".join([*events, b""]))
    table = _answer(parser, query, data, len(events), lenient=True)
    if table is None and len(events) == 1:  # a lenient parser rejects deep nesting that a strict one accepts
        table = _answer(parser, query, data, 1, lenient=False)
    if table is not None:
        yield table
    elif len(events) == 1:
        reason = "it can't be read: nested too deeply, or a time beyond the years 1 to 9999"
        bad.append(BadLine(offsets[0], reason, events[0][:RAW_LIMIT]))
    else:
        half = len(events) // 2
        yield from _ask(parser, query, events[:half], offsets[:half], bad)
        yield from _ask(parser, query, events[half:], offsets[half:], bad)


def _answer(parser: Parser, query: Query, data: memoryview, count: int, *, lenient: bool) -> pa.Table | None:
    """Query ``count`` lines; return None if the parser refuses one."""
    parser.take(data, lenient)
    try:
        if lenient:
            were_read = parser.table("{'schema': 'VARCHAR'}", '"schema" IS NOT NULL').column(0).to_pylist()
            if len(were_read) != count or not all(were_read):
                return None
        read, table = query.run(parser)
    except _PARSER_ERRORS:
        raise
    except _REFUSALS:
        return None
    return table if read in (None, count) else None


def _batches(table: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in table.combine_chunks().to_batches():
        columns = [_conform(batch.column(batch.schema.get_field_index(field.name)), field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the same values in exactly this type, including names, nullability and metadata of nested fields."""
    if array.type.equals(kind, check_metadata=True):
        return array
    if array.null_count == len(array):  # an untyped NULL may have any type
        return pa.nulls(len(array), kind)
    if pa.types.is_struct(kind):
        children = [_conform(array.field(number), field.type) for number, field in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        keys, items = _conform(array.keys, kind.key_type), _conform(array.items, kind.item_type)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, kind)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(_offsets(array), _conform(array.values, kind.value_type), kind)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(array.type) and array.type.unit == kind.unit:
        return array.view(kind)
    return array.cast(kind)


def _offsets(array: pa.Array) -> pa.Array:
    """Return a list's offsets, null where the list is null."""
    if not array.null_count:
        return array.offsets
    missing = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(missing, None, array.offsets)


def _quarantined(query: Query, path: str, bad: list[BadLine]) -> pa.RecordBatch:
    schema, bad = query.arrow, [] if query.only_events else bad
    rows = [
        {"file": path, "offset": at, "reason": reason, "raw": raw.decode(errors="replace")} for at, reason, raw in bad
    ]
    columns = [
        pa.array(rows, field.type) if field.name == "quarantine" else pa.nulls(len(bad), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
