"""Read and write files of rows in any format and compression."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

from balog.common.errors import MissingExtraError
from balog.singer.batch.columns import Shape
from balog.singer.batch.compression import Limits, decompress
from balog.singer.batch.csv_rows import CsvOptions, CsvWriter, csv_options, read_csv
from balog.singer.batch.dialects import BatchError, BatchManifest
from balog.singer.batch.rows import JsonlWriter, RowWriter, read_jsonl

FORMATS = ("jsonl", "csv", "parquet")
COMPRESSIONS = ("none", "gzip", "zstd")
_SUFFIXES = {"gzip": ".gz", "zstd": ".zst"}


def read_rows(file: IO[bytes], batch: BatchManifest, schema: Any, limits: Limits) -> Iterator[bytes]:
    """Return a file's rows as JSON objects, each on one line without a newline. Memory holds only some rows.

    Args:
        file: opened for reading; closed by the caller.
        batch: the message that names the file; its format and compression are what the file must be.
        schema: the JSON Schema of the stream as it was last seen, else None.
        limits: see ``Limits``.

    Raises:
        BatchError: the file does not match its message, is truncated, damaged, or too large; as a clause that
            goes on after the file's name.
        MissingExtraError: a package that the format or compression needs is not installed.
    """
    compression = batch.compression
    if batch.dialect == "sdk" and compression == "none":
        compression = None  # the SDK's taps write gzip whatever their messages say (singer-sdk 0.54)
    if batch.format == "jsonl":
        return read_jsonl(decompress(file, compression, limits))
    if batch.format == "csv":
        return read_csv(decompress(file, compression, limits), csv_options(batch.options), schema)
    if batch.format == "parquet":
        return _parquet(file, schema, limits)
    raise BatchError(f"is in the format {batch.format[:50]!r}, and only {', '.join(FORMATS)} are read")


def _parquet(file: IO[bytes], schema: Any, limits: Limits) -> Iterator[bytes]:
    """Read a Parquet file, also from a source without seek.

    What a message says of a Parquet file's compression is that of the pages inside, which the file itself knows.
    """
    read_parquet = _parquet_rows().read_parquet
    if file.seekable():
        yield from read_parquet(file, schema, limits)
        return
    with tempfile.TemporaryFile() as copy:
        for block in decompress(file, None, limits):
            copy.write(block)
        yield from read_parquet(copy, schema, limits)


def _parquet_rows() -> Any:
    try:
        from balog.singer.batch import parquet_rows
    except ImportError:
        raise MissingExtraError("a BATCH in Parquet", "parquet") from None
    return parquet_rows


def suffix(format: str, compression: str) -> str:
    """Return the suffix of a file's name, such as ``.jsonl.gz``. A Parquet file is compressed inside."""
    return f".{format}" + ("" if format == "parquet" else _SUFFIXES.get(compression, ""))


def writer(file: IO[bytes], format: str, compression: str, options: CsvOptions, shape: Shape) -> RowWriter:
    """Return a writer of rows into a file.

    Raises:
        MissingExtraError: a package that the format or compression needs is not installed.
    """
    if format == "parquet":
        return _parquet_rows().ParquetWriter(file, compression, shape)  # type: ignore[no-any-return]
    return CsvWriter(file, compression, options, shape) if format == "csv" else JsonlWriter(file, compression)
