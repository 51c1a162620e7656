"""Read and write Parquet by row groups, typed by the stream's SCHEMA. Needs pyarrow, the extra ``parquet``."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow
from msgspec import Raw
from pyarrow import compute, parquet, types

from balog.singer.batch.columns import Column, Shape, column_of, columns_of
from balog.singer.batch.compression import Limits
from balog.singer.batch.dialects import BatchError
from balog.singer.batch.parquet_types import ParquetType, field_of, parquet_type_of
from balog.singer.batch.rows import MAX_ROW_BYTES, DoesNotFit, RowWriter, lenient_object

_ROW_GROUP_BYTES = 8 << 20
_CHUNK_ROWS = 1000
_CHUNK_BYTES = 1 << 20
_MAX_ROWS_AT_ONCE = 1024
_ROWS_AT_ONCE_BYTES = 4 << 20
_METADATA_BYTES = 64 << 20

_encode = msgspec.json.Encoder(decimal_format="number").encode
_decode = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode


def read_parquet(file: IO[bytes], schema: Any, limits: Limits) -> Iterator[bytes]:
    """Yield the rows of a file with ``seek``.

    A null is left out where the stream's SCHEMA does not allow it. Timestamps become RFC 3339 text, decimals numbers
    with all their digits (text where the SCHEMA says text), bytes base64.

    Raises:
        BatchError: it is no Parquet file, is cut off or damaged, or holds too much.
    """
    try:
        reader = parquet.ParquetFile(
            file,
            pre_buffer=False,
            buffer_size=1 << 20,
            thrift_string_size_limit=_METADATA_BYTES,
            thrift_container_size_limit=1_000_000,
        )
    except (pyarrow.ArrowException, OSError, ValueError):
        raise BatchError("is no Parquet file that can be read, or is cut off") from None
    columns = columns_of(schema)
    described = [
        Describe(field.name, field.type, is_json(field), columns.get(field.name)) for field in reader.schema_arrow
    ]
    if len({column.name for column in described}) != len(described):
        raise BatchError("names a column twice")
    if columns and not columns.keys() & {column.name for column in described}:
        raise BatchError("has none of the columns that the stream's SCHEMA names")
    total = 0
    try:
        for batch in reader.iter_batches(batch_size=_rows_at_once(reader.metadata), use_threads=False):
            total += batch.nbytes
            if total > limits.decompressed:
                raise BatchError(f"holds more than {limits.decompressed} bytes when it is decompressed")
            yield from _rows(batch, described)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, OverflowError):
        raise BatchError("is damaged: its Parquet data can't be read") from None


def _rows_at_once(metadata: Any) -> int:
    """Return how many rows to read at once, from the file's metadata about its row groups."""
    rows = max(metadata.num_rows, 1)
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return int(min(max(_ROWS_AT_ONCE_BYTES * rows // max(size, 1), 1), _MAX_ROWS_AT_ONCE))


def _rows(batch: Any, described: list[Describe]) -> Iterator[bytes]:
    values = [values_of(batch.column(number), column) for number, column in enumerate(described)]
    left_out = [column.leaves_out_nulls for column in described]
    for row in zip(*values) if values else ():
        encoded = _encode(
            {
                column.name: value
                for column, value, is_left_out in zip(described, row, left_out)
                if value is not None or not is_left_out
            }
        )
        if len(encoded) > MAX_ROW_BYTES:
            raise BatchError(f"has a row of more than {MAX_ROW_BYTES} bytes")
        yield encoded


class ParquetWriter(RowWriter):
    """See ``RowWriter``. Rows are held until a row group of about 8 MiB is full."""

    def __init__(self, file: IO[bytes], compression: str, shape: Shape) -> None:
        super().__init__(file)
        self._compression = compression
        self._shape = shape
        self._kinds: dict[str, ParquetType] = {}
        self._schema: Any = None
        self._writer: Any = None
        self._held: list[dict[str, Any]] = []
        self._held_bytes = 0
        self._batches: list[Any] = []
        self._batch_bytes = 0

    def _write(self, row: bytes) -> None:
        values = _values_in(row)
        if self._shape.learn(values) and self._schema is not None:
            raise DoesNotFit
        if self._schema is None:
            self._begin()
        converted = {name: self._convert(name, value) for name, value in values.items() if value is not None}
        if self._shape.widened != self._widened:
            if self.count:
                raise DoesNotFit
            self._begin()  # no row is written yet, so the file can still change its columns
            self._write(row)
            return
        self._held.append(converted)
        self._held_bytes += len(row)
        if len(self._held) >= _CHUNK_ROWS or self._held_bytes >= _CHUNK_BYTES:
            self._collect()

    def _write_rest(self) -> None:
        if self._schema is None:
            self._begin()
        self._collect()
        self._write_group()
        if self._writer is None:
            self._open()
        self._writer.close()

    def _convert(self, name: str, value: Any) -> Any:
        try:
            return self._kinds[name].convert(value)
        except (ValueError, TypeError):
            is_text = self._shape.columns[name].type == "string" and isinstance(value, str)
            self._shape.widened[name] = "text" if is_text else "json"
            return None

    def _begin(self) -> None:
        self._widened = dict(self._shape.widened)
        self._kinds = {
            name: parquet_type_of(column, self._shape.widened.get(name)) for name, column in self._shape.columns.items()
        }
        self._schema = pyarrow.schema([field_of(name, kind) for name, kind in self._kinds.items()])

    def _collect(self) -> None:
        """Convert the rows to Arrow data, which takes a tenth of their memory."""
        if not self._held:
            return
        batch = pyarrow.RecordBatch.from_pylist(self._held, self._schema)
        self._batches.append(batch)
        self._batch_bytes += batch.nbytes
        self._held, self._held_bytes = [], 0
        if self._batch_bytes >= _ROW_GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if not self._batches:
            return
        if self._writer is None:
            self._open()
        self._writer.write_table(pyarrow.Table.from_batches(self._batches, self._schema))
        self._batches, self._batch_bytes = [], 0

    def _open(self) -> None:
        self._writer = parquet.ParquetWriter(
            pyarrow.PythonFile(self._file, mode="w"), self._schema, compression=self._compression
        )


def _values_in(row: bytes) -> dict[str, Any]:
    """Return a row's values, with fractions as decimals to keep all digits until the column's type is known."""
    try:
        return _decode(row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        values = lenient_object(row, parse_float=Decimal, parse_constant=lambda _: None)
    if values is None:
        raise BatchError("a row is not a JSON object")
    try:
        _encode(values)
    except (RecursionError, UnicodeEncodeError):
        raise BatchError("a row is not JSON that Parquet can hold") from None
    return values


class Describe(NamedTuple):
    """A column to read.

    Attributes:
        type: Arrow's.
        is_json: its text is JSON, as ``parquet_types`` writes it.
        column: its column in the stream's SCHEMA; None without one.
    """

    name: str
    type: Any
    is_json: bool = False
    column: Column | None = None

    @property
    def leaves_out_nulls(self) -> bool:
        """Whether the SCHEMA forbids null."""
        return self.column is not None and not self.column.is_nullable


def is_json(field: Any) -> bool:
    """Return whether the text of an Arrow field is JSON, as ``parquet_types`` marks it."""
    return bool(field.metadata and field.metadata.get(b"balog") == b"json")


def values_of(array: Any, described: Describe) -> list[Any]:
    """Return a column's values as msgspec encodes them to JSON; None for null.

    Raises:
        BatchError: a type without a JSON form, or a value that does not match its column.
    """
    type = array.type
    if isinstance(type, pyarrow.BaseExtensionType):
        array, type = array.storage, array.storage.type
    if types.is_dictionary(type):
        array = array.dictionary_decode()
        type = array.type
    if described.is_json:
        return [None if text is None else _json(text, described.name) for text in array.to_pylist()]
    if types.is_struct(type):
        return _structs(array, described)
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        return _lists(array, described)
    return _plain(array, type, described)


def _plain(array: Any, type: Any, described: Describe) -> list[Any]:
    as_it_is = (types.is_boolean, types.is_integer, types.is_null, types.is_string, types.is_large_string)
    make: Callable[[Any], Any] | None = None
    if types.is_floating(type):
        make = _finite
    elif types.is_decimal(type):
        make = "{:f}".format if described.column is not None and described.column.type == "string" else None
    elif types.is_timestamp(type) or types.is_date(type) or types.is_time(type):
        return _times(array, type)
    elif types.is_duration(type):
        array = array.cast(pyarrow.int64())
    elif types.is_binary(type) or types.is_large_binary(type) or types.is_fixed_size_binary(type):
        make = _bytes(described)
    elif types.is_map(type):
        make = _map
    elif not any(fits(type) for fits in as_it_is):
        raise BatchError(f"column {described.name}: JSON has nothing for Parquet's {type}")
    values: list[Any] = array.to_pylist()
    return values if make is None else [None if value is None else make(value) for value in values]


def _structs(array: Any, described: Describe) -> list[Any]:
    schema = described.column.schema if described.column else {}
    columns = columns_of(schema)
    fields = [Describe(field.name, field.type, is_json(field), columns.get(field.name)) for field in array.type]
    parts = [values_of(part, field) for part, field in zip(array.flatten(), fields)]
    rows = list(zip(*parts)) if parts else [()] * len(array)
    return [
        {field.name: value for field, value in zip(fields, row) if value is not None or not field.leaves_out_nulls}
        if is_there
        else None
        for is_there, row in zip(array.is_valid().to_pylist(), rows)
    ]


def _lists(array: Any, described: Describe) -> list[Any]:
    field = array.type.value_field
    items = described.column.schema.get("items") if described.column else None
    values = values_of(array.flatten(), Describe(described.name, field.type, is_json(field), column_of(items)))
    lists, start = [], 0
    for length in compute.list_value_length(array).to_pylist():
        lists.append(None if length is None else values[start : start + length])
        start += length or 0
    return lists


def _json(text: str, name: str) -> Raw:
    data = text.encode()
    try:
        msgspec.json.decode(data, type=Raw)
    except msgspec.DecodeError:
        raise BatchError(f"column {name}: is marked as JSON and holds text that is not JSON") from None
    return Raw(data)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _times(array: Any, type: Any) -> list[str | None]:
    """Return timestamps, dates or times as text of RFC 3339, without a fraction of zeros."""
    if types.is_timestamp(type):
        array = array.cast(pyarrow.timestamp(type.unit))  # in UTC, if it has a zone
    elif types.is_date(type):
        array = array.cast(pyarrow.date32())
    zone = "Z" if types.is_timestamp(type) and type.tz is not None else ""
    texts = compute.replace_substring_regex(array.cast(pyarrow.string()), r"\.0+$", "")
    values: list[str | None] = compute.replace_substring(texts, " ", "T").to_pylist()
    if not types.is_time(type) and any(text and (text[4:5] != "-" or text[:4] == "0000") for text in values):
        raise BatchError("has a date outside of the years 1 to 9999")
    return [text and text + zone for text in values]


def _bytes(described: Describe) -> Callable[[bytes], str]:
    column = described.column
    if column is None or column.type != "string" or "contentEncoding" in column.schema:
        return lambda value: base64.b64encode(value).decode()

    def text(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise BatchError(
                f"column {described.name} holds bytes that are no text; say contentEncoding: base64 in its SCHEMA"
            ) from None

    return text


def _map(pairs: Any) -> Any:
    if all(isinstance(key, str) for key, _ in pairs):
        return dict(pairs)
    return [list(pair) for pair in pairs]
