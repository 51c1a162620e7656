"""The rows of one file, by its format and compression."""

from __future__ import annotations

import csv
import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import IO, Any

from balog.common.errors import MissingExtraError
from balog.singer.batch.compression import BLOCK_BYTES, BlocksFile, Limits, decompress
from balog.singer.batch.dialects import BatchError
from balog.tap.errors import SourceError
from balog.tap.records.plain import decode_json
from balog.tap.records.times import to_date_time

MAX_LINE = 16 << 20
"""The maximum number of bytes in a line of JSON."""
MAX_DOCUMENT = 64 << 20
"""The maximum number of bytes in a file that is one JSON document, or an Excel workbook."""

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "excel",
}
FORMATS = tuple(dict.fromkeys(_SUFFIXES.values()))
_PACKED = (".gz", ".zst")
_PAGE = 1_000


@dataclass(frozen=True)
class BadRow:
    """A row that is not a record.

    Attributes:
        raw: the row as it came.
        reason: what is wrong, as a clause.
    """

    raw: Any
    reason: str


@dataclass(frozen=True)
class ReadOptions:
    """How files are read.

    Attributes:
        format: one of ``FORMATS``; None for that of the file's name.
        delimiter: of CSV; None for the format's.
        encoding: of CSV.
        sheet: of Excel; None for the first one.
        max_bytes: the maximum size of a file when it is decompressed.
    """

    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8-sig"
    sheet: str | None = None
    max_bytes: int = 8 << 30


def format_of(name: str) -> str | None:
    """Return the format of a file by its name, without ``.gz`` or ``.zst``; None if it is unknown."""
    lower = name.lower()
    for packed in _PACKED:
        lower = lower.removesuffix(packed)
    return next((format for suffix, format in _SUFFIXES.items() if lower.endswith(suffix)), None)


def read_rows(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a file with their numbers, from 1: a record, or a ``BadRow``.

    Compression is found by the first bytes.

    Args:
        file: the file.
        name: its name, for its format and for errors.
        options: see ``ReadOptions``.

    Raises:
        SourceError: the file is damaged or too large, or its format is unknown.
        MissingExtraError: a package is missing.
    """
    reader = _READERS.get(options.format or format_of(name) or "")
    if reader is None:
        raise SourceError(f"{name}: its format is unknown; set format to one of {', '.join(FORMATS)}")
    try:
        blocks = BlocksFile(decompress(file, None, Limits(decompressed=options.max_bytes)))
        yield from enumerate(reader(io.BufferedReader(blocks, BLOCK_BYTES), name, options), 1)
    except BatchError as error:
        raise SourceError(f"{name}: {error}") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"{name}: is not {options.encoding.removesuffix('-sig')}: {error.reason}") from None
    except (EOFError, zipfile.BadZipFile) as error:
        raise SourceError(f"{name}: is damaged: {error}") from None


def _check_sizes(infos: list[zipfile.ZipInfo], name: str, limits: Limits) -> None:
    size, packed = sum(info.file_size for info in infos), sum(info.compress_size for info in infos)
    if size > limits.decompressed or (size > BLOCK_BYTES * 64 and size > limits.ratio * packed):
        raise SourceError(f"{name}: would be {size} bytes, {size // max(packed, 1)} times as large; set max_bytes")


@contextmanager
def _seekable(file: IO[bytes], name: str, limit: int) -> Iterator[IO[bytes]]:
    """Copy a file to a temporary one on disk, which can be read in any order."""
    with tempfile.TemporaryFile() as copy:
        size = 0
        while block := file.read(BLOCK_BYTES):
            size += len(block)
            if size > limit:
                raise SourceError(f"{name}: has more than {limit} bytes")
            copy.write(block)
        copy.seek(0)
        yield copy


# -- formats ----------------------------------------------------------------------------------------------------------


def _csv(file: IO[bytes], name: str, options: ReadOptions, delimiter: str = ",") -> Iterator[Any]:
    text = io.TextIOWrapper(file, options.encoding, newline="")
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    seen: list[str] = []
    rows = csv.reader(_kept(text, seen), delimiter=options.delimiter or delimiter, strict=True)
    header = next((row for row in rows if row), None)  # blank lines are no rows
    if header is None:
        return
    if len(set(header)) < len(header):
        raise SourceError(f"{name}: the first line has a name twice")
    width = len(header)
    while True:
        seen.clear()
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            if str(error) == "unexpected end of data":
                line = rows.line_num - len(seen) + 1
                raise SourceError(f"{name}: is cut off: a quoted value in the row of line {line} has no end") from None
            yield BadRow("".join(seen), f"line {rows.line_num}: {error}")
            continue
        if len(row) == width:
            yield dict(zip(header, row))
        elif row:
            yield BadRow(row, f"has {len(row)} values for {width} columns")


def _kept(lines: Iterable[str], seen: list[str]) -> Iterator[str]:
    for line in lines:
        seen.append(line)
        yield line


def _jsonl(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Any]:
    while line := file.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise SourceError(f"{name}: has a line of more than {MAX_LINE} bytes")
        if line.strip():
            try:
                yield _record(decode_json(line))
            except (ValueError, RecursionError) as error:
                yield BadRow(line.decode("utf-8", "backslashreplace"), f"is not JSON: {error}")


def _json(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Any]:
    data = file.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        raise SourceError(f"{name}: one document of more than {MAX_DOCUMENT} bytes; write it as lines (.jsonl)")
    try:
        document = decode_json(data)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{name}: is not JSON: {error}") from None
    yield from map(_record, document if isinstance(document, list) else [document])


def _record(value: Any) -> Any:
    return value if isinstance(value, Mapping) else BadRow(value, "is not an object")


def _parquet(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("Parquet", "parquet") from None
    with _seekable(file, name, options.max_bytes) as whole:
        try:
            for batch in parquet.ParquetFile(whole).iter_batches(_PAGE):
                columns = {
                    field.name: _texts(column) if _NANOSECONDS(str(field.type)) else column.to_pylist()
                    for field, column in zip(batch.schema, batch.columns)
                }
                yield from (dict(zip(columns, row)) for row in zip(*columns.values()))
        except (pyarrow.ArrowException, OSError) as error:
            raise SourceError(f"{name}: is damaged: {str(error).splitlines()[0]}") from None
        except ValueError:  # of a value in another one
            raise SourceError(f"{name}: has a time with nanoseconds in a list or struct") from None


_NANOSECONDS = re.compile(r"(timestamp|time64)\[ns.*").fullmatch


def _texts(column: Any) -> list[str | None]:
    """Return times with nanoseconds, which Python lacks, as RFC 3339, times of day as Arrow writes them."""
    return [text and (to_date_time(text) or text) for text in column.cast("string").to_pylist()]


def _excel(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Any]:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtraError("Excel", "excel") from None
    with _seekable(file, name, MAX_DOCUMENT) as whole:
        with zipfile.ZipFile(whole) as archive:
            _check_sizes(archive.infolist(), name, Limits(decompressed=options.max_bytes))
        book = load_workbook(whole, read_only=True, data_only=True)
        try:
            if options.sheet is not None and options.sheet not in book.sheetnames:
                raise SourceError(f"{name}: has no sheet {options.sheet!r}; it has {', '.join(book.sheetnames)}")
            sheet = book[options.sheet] if options.sheet is not None else book.worksheets[0]
            rows = sheet.iter_rows(values_only=True)
            filled = (row for row in rows if any(value is not None for value in row))
            header = [None if title is None else str(title) for title in next(filled, ())]
            titles = [title for title in header if title is not None]
            if len(set(titles)) < len(titles):
                raise SourceError(f"{name}: the first row has a name twice")
            for row in filled:
                if any(title is None and value is not None for title, value in zip_longest(header, row)):
                    yield BadRow(list(row), "has a value in a column without a name")
                else:
                    yield {title: value for title, value in zip(header, row) if title is not None}
        finally:
            book.close()


_READERS: dict[str, Callable[[IO[bytes], str, ReadOptions], Iterator[Any]]] = {
    "csv": _csv,
    "tsv": partial(_csv, delimiter="\t"),
    "jsonl": _jsonl,
    "json": _json,
    "parquet": _parquet,
    "excel": _excel,
}
