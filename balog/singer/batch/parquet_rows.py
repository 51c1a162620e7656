"""Read and write Parquet by row groups, typed by the stream's SCHEMA. Needs pyarrow, the extra ``parquet``."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import IO, Any

import msgspec
import pyarrow
from pyarrow import parquet

from balog.singer.batch.columns import Shape, columns_of
from balog.singer.batch.compression import Limits
from balog.singer.batch.dialects import BatchError
from balog.singer.batch.parquet_types import ParquetType, field_of, parquet_type_of
from balog.singer.batch.parquet_values import Describe, is_json, values_of
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
